"""`ooospec doctor` against scripted servers in every state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ooospec_agents.cli import app
from ooospec_agents.doctor.sidecar import look_at_adapter, look_at_sidecar
from ooospec_agents.doctor.target import look_at_target, try_hint_path
from ooospec_agents.testing import Received, Reply, ScriptedTarget, oblige
from ooospec_agents.testing.fixtures import SidecarMaker, TargetMaker
from ooospec_agents.testing.loopback import Answer

NOWHERE = "http://127.0.0.1:9"


def levels(findings: Any) -> dict[str, str]:
    return {finding.check: finding.level for finding in findings}


def mends(findings: Any) -> list[str]:
    return [finding.mend for finding in findings if finding.level in ("problem", "warning")]


class TestTarget:
    def test_one_that_drafts(self, scripted_target: TargetMaker) -> None:
        for url in (scripted_target(oblige).url, scripted_target(oblige).base_url):
            view = look_at_target(url)
            assert levels(view.findings) == {"target": "ok", "plugin": "ok"}
            assert view.model == "scripted"

    def test_none(self) -> None:
        assert mends(look_at_target(NOWHERE).findings) == ["ooospec serve target --model MODEL --port 9"]
        assert levels(look_at_target(NOWHERE, expected=False).findings) == {"target": "note"}
        assert levels(look_at_target("nonsense").findings) == {"target": "problem"}

    def test_one_without_the_plugin(self, scripted_target: TargetMaker) -> None:
        view = look_at_target(scripted_target(plugin=False).url)
        assert levels(view.findings) == {"target": "ok", "plugin": "problem"}
        assert mends(view.findings) == ["ooospec serve target --model MODEL --port PORT"]

    def test_one_that_does_not_draft(self, scripted_target: TargetMaker) -> None:
        (_, plugin) = look_at_target(scripted_target(drafting=False).url).findings
        assert plugin.level == "problem"
        assert "scripted: drafting is off" in plugin.says

    def test_one_that_asks_for_a_key(self, scripted_target: TargetMaker) -> None:
        target = scripted_target(api_key="secret")
        assert mends(look_at_target(target.url, "wrong").findings) == ["ooospec doctor --api-key KEY"]
        assert mends(look_at_target(target.url, "secret").findings) == []

    def test_something_else(self) -> None:
        class Page(ScriptedTarget):
            def respond(self, request: Received) -> Answer:
                return Answer(text="<html>")

        with Page() as page:
            (found,) = look_at_target(page.url).findings
        assert found.level == "problem"
        assert "no OpenAI-compatible server" in found.says

    def test_faults_and_another_version(self) -> None:
        class Old(ScriptedTarget):
            def _status(self) -> dict[str, Any]:
                return {**super()._status(), "version": "0.0.1", "faults": {"report": 2}}

        with Old() as old:
            found = look_at_target(old.url).findings
        assert levels(found) == {"target": "ok", "plugin": "ok", "versions": "warning", "faults": "warning"}
        assert "pip install 'ooospec-agents==0.0.1'" in mends(found)


class TestHintPath:
    def test_whole(self, scripted_target: TargetMaker) -> None:
        found = try_hint_path(scripted_target(oblige).url, "scripted")
        assert (found.level, found.check) == ("ok", "hint path")

    def test_a_hint_that_goes_astray(self) -> None:
        class Astray(ScriptedTarget):
            def _take_hint(self, request_id: str, request: Received) -> Answer:
                return Answer(status=202, text="")

        with Astray(oblige) as target:
            found = try_hint_path(target.url, "scripted")
        assert (found.level, found.mend) == ("problem", "ooospec serve target --model MODEL --sidecar URL")

    def test_a_request_that_fails(self, scripted_target: TargetMaker) -> None:
        found = try_hint_path(scripted_target(Reply(status=400, error="no parser")).url, "scripted")
        assert found.level == "problem"
        assert "no parser" in found.says


class TestSidecar:
    def test_a_trained_one(self, scripted_sidecar: SidecarMaker) -> None:
        assert levels(look_at_sidecar(scripted_sidecar(models=("base", "ooospec")).url)) == {"sidecar": "ok"}

    def test_an_untrained_one(self, scripted_sidecar: SidecarMaker) -> None:
        found = look_at_sidecar(scripted_sidecar(models=("base",)).url)
        assert levels(found) == {"sidecar": "ok", "adapter": "warning"}
        assert mends(found) == ["ooospec serve sidecar --model MODEL --adapter FOLDER"]

    @pytest.mark.parametrize(
        ("options", "mend"),
        [
            ({"models": ("base",)}, "ooospec serve sidecar --model MODEL --adapter FOLDER"),
            ({"garbage": "<html>"}, "ooospec serve sidecar --model MODEL"),
            ({"status": 500}, "ooospec serve sidecar --model MODEL"),
        ],
    )
    def test_one_that_fails(self, scripted_sidecar: SidecarMaker, options: Any, mend: str) -> None:
        found = look_at_sidecar(scripted_sidecar(**options).url, "ooospec")
        assert levels(found) == {"sidecar": "problem"}
        assert mends(found) == [mend]

    def test_none(self) -> None:
        assert levels(look_at_sidecar(NOWHERE)) == {"sidecar": "problem"}
        assert levels(look_at_sidecar(NOWHERE, ours=False)) == {"sidecar": "warning"}
        assert levels(look_at_sidecar("nonsense")) == {"sidecar": "problem"}


class TestAdapter:
    def test_whole(self, tmp_path: Path) -> None:
        (tmp_path / "adapter_config.json").write_text('{"r": 32, "base_model_name_or_path": "base"}')
        (tmp_path / "adapter_model.safetensors").write_bytes(b"")
        assert levels(look_at_adapter(tmp_path)) == {"adapter": "ok"}

    def test_without_weights_without_anything_too_large(self, tmp_path: Path) -> None:
        assert levels(look_at_adapter(tmp_path)) == {"adapter": "problem"}
        (tmp_path / "adapter_config.json").write_text('{"r": 32}')
        (found,) = look_at_adapter(tmp_path)
        assert "its training did not end" in found.says
        (tmp_path / "adapter_config.json").write_text('{"r": 512}')
        (found,) = look_at_adapter(tmp_path)
        assert "vLLM serves at most 256" in found.says


class TestCommand:
    def run(self, *arguments: str) -> Any:
        return CliRunner(env={"OPENAI_API_KEY": ""}).invoke(app, ["doctor", *arguments])

    def test_all_well(self, scripted_target: TargetMaker, scripted_sidecar: SidecarMaker) -> None:
        target, sidecar = scripted_target(oblige), scripted_sidecar(models=("ooospec",))
        done = self.run("--target", target.url, "--sidecar", sidecar.url, "--json")
        read = json.loads(done.stdout)
        found = {one["check"]: one["level"] for one in read["findings"]}
        assert "tokens were drafted and accepted" in done.stdout
        assert {name: found[name] for name in ("python", "target", "plugin", "sidecar", "hint path")} == dict.fromkeys(
            ("python", "target", "plugin", "sidecar", "hint path"), "ok"
        )

    def test_a_target_that_is_not_there(self) -> None:
        done = self.run("--target", NOWHERE)
        assert done.exit_code == 1
        assert "mend: ooospec serve target --model MODEL --port 9" in done.stdout
        assert "no target could be asked" in done.stdout

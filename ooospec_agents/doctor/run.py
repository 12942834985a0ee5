"""The whole examination, and its report as text or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ooospec_agents.doctor import machine
from ooospec_agents.doctor.findings import Finding
from ooospec_agents.doctor.sidecar import look_at_adapter, look_at_sidecar
from ooospec_agents.doctor.target import look_at_target, try_hint_path

DEFAULT_TARGET = "http://127.0.0.1:8000"


@dataclass(frozen=True)
class Servers:
    """What is to be looked at beside this machine; None: not named.

    Attributes:
        target: The target's address; where none is named, the usual one is tried.
        api_key: Its key.
        sidecar: The sidecar's address; where none is named, the one that the target says it has.
        sidecar_model: Its model or adapter.
        sidecar_api_key: Its key.
        adapter: An adapter's folder.
    """

    target: str | None = None
    api_key: str = ""
    sidecar: str | None = None
    sidecar_model: str | None = None
    sidecar_api_key: str | None = None
    adapter: Path | None = None


def examine(servers: Servers) -> Iterator[Finding]:
    """Everything, from the ground up; each finding as soon as it is made."""
    yield machine.python()
    yield from machine.clients()
    yield from machine.vllm()
    url = servers.target or DEFAULT_TARGET
    target = look_at_target(url, servers.api_key, expected=servers.target is not None)
    yield from target.findings
    theirs = (target.status or {}).get("sidecar")
    sidecar = servers.sidecar or theirs
    if sidecar:
        ours = servers.sidecar is not None
        yield from look_at_sidecar(sidecar, servers.sidecar_model, servers.sidecar_api_key, ours=ours)
    else:
        known = target.status is not None
        text = "none named, and the target has none: drafts come from schema, conversation and history"
        text = text if known else "none named, and no target could be asked for its own"
        yield Finding("sidecar", "note", text, "ooospec serve sidecar --model MODEL")
    if servers.adapter is not None:
        yield from look_at_adapter(servers.adapter)
    if target.status is not None and target.status["drafting"]:
        yield try_hint_path(url, target.model, servers.api_key)


def to_text(finding: Finding) -> str:
    """A finding for people: what and how bad, what was found and, below it, what to do."""
    line = f"{finding.level:<8} {finding.check:<12} {finding.says}"
    return f"{line}\n{'':<22}mend: {finding.mend}" if finding.mend and finding.level != "ok" else line


def to_json(findings: Sequence[Finding]) -> str:
    """All findings as one JSON object."""
    return json.dumps({"ok": exit_code(findings) == 0, "findings": [asdict(finding) for finding in findings]}, indent=2)


def exit_code(findings: Sequence[Finding]) -> int:
    """1 if anything does not work, else 0."""
    return int(any(finding.level == "problem" for finding in findings))

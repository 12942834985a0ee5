"""The lock file of CI: what `.venv` has of all that `.[langchain,cpu,dev]` needs; `make lock` runs this.

Only names and versions: no address of a registry, no path, and no label of a build, so that it fits every index.
"""

from __future__ import annotations

import sys
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = ("langchain", "cpu", "dev")
LEFT_OUT = frozenset({"torchvision", "torchaudio", "torchcodec"})
"""What the Makefile uninstalls."""
HEAD = "# Written by `make lock`. What CI installs: names and versions, as constraints.\n"


def closure(asked: list[str]) -> dict[str, str]:
    """Versions installed here of what is asked for and of all that it needs, by name."""
    found: dict[str, str] = {}
    seen: set[str] = set()
    todo = [(Requirement(text), "") for text in asked]
    while todo:
        requirement, extra = todo.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        if name in LEFT_OUT:
            continue
        distribution = metadata.distribution(name)
        found[name] = Version(distribution.version).public
        for wanted in ("", *requirement.extras):
            if f"{name}[{wanted}]" not in seen:
                seen.add(f"{name}[{wanted}]")
                todo += [(Requirement(text), wanted) for text in distribution.requires or ()]
    return dict(sorted(found.items()))


if __name__ == "__main__":
    extras = PROJECT["optional-dependencies"]
    asked = PROJECT["dependencies"] + [text for extra in EXTRAS for text in extras[extra]]
    pins = "".join(f"{name}=={version}\n" for name, version in closure(asked).items())
    Path(sys.argv[1]).write_text(HEAD + pins, encoding="utf-8")

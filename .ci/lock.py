"""The lock file of CI: what `.venv` has of all that `.[langchain,cpu,dev]` needs. `make lock` writes it, after a green run.

Only names and versions: no address of a registry, no path, and no label of a build, so that it fits every index.
"""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

PROJECT = "ooospec-agents"
EXTRAS = frozenset({"langchain", "cpu", "dev"})
LEFT_OUT = frozenset({PROJECT, "torchvision", "torchaudio", "torchcodec"})
"""The project itself, and what the Makefile uninstalls."""
HEAD = "# Written by `make lock`. What CI installs: names and versions, as constraints.\n"


def closure(project: str, extras: frozenset[str]) -> dict[str, str]:
    """Versions installed here of all that a distribution with these extras needs, by name."""
    found: dict[str, str] = {}
    todo = [(project, extras)]
    seen: set[tuple[str, frozenset[str]]] = set()
    while todo:
        name, wanted = todo.pop()
        if (name, wanted) in seen:
            continue
        seen.add((name, wanted))
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # for another system or Python
        found[name] = Version(distribution.version).public
        for text in distribution.requires or ():
            requirement = Requirement(text)
            marker = requirement.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in (*wanted, "")):
                todo.append((canonicalize_name(requirement.name), frozenset(requirement.extras)))
    return {name: version for name, version in sorted(found.items()) if name not in LEFT_OUT}


if __name__ == "__main__":
    pins = "".join(f"{name}=={version}\n" for name, version in closure(PROJECT, EXTRAS).items())
    Path(sys.argv[1]).write_text(HEAD + pins, encoding="utf-8")

"""Pytest fixtures, made available by `pytest_plugins = ["ooospec_agents.testing.fixtures"]` in a conftest.py.

`scripted_target` and `scripted_sidecar` are makers: called with the arguments of `ScriptedTarget` and
`ScriptedSidecar`, they start a server that lasts until the test ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Protocol

import pytest

from ooospec_agents.testing.sidecar import ScriptedSidecar, Table
from ooospec_agents.testing.target import DEFAULT_REPLY, Script, ScriptedTarget


class TargetMaker(Protocol):
    """Starts a scripted target."""

    def __call__(self, script: Script = ..., **options: Any) -> ScriptedTarget: ...


class SidecarMaker(Protocol):
    """Starts a scripted sidecar."""

    def __call__(self, table: Table | None = ..., **options: Any) -> ScriptedSidecar: ...


@pytest.fixture
def scripted_target() -> Iterator[TargetMaker]:
    """A maker of scripted targets."""
    with ExitStack() as running:

        def make(script: Script = DEFAULT_REPLY, **options: Any) -> ScriptedTarget:
            return running.enter_context(ScriptedTarget(script, **options))

        yield make


@pytest.fixture
def scripted_sidecar() -> Iterator[SidecarMaker]:
    """A maker of scripted sidecars."""
    with ExitStack() as running:

        def make(table: Table | None = None, **options: Any) -> ScriptedSidecar:
            return running.enter_context(ScriptedSidecar(table, **options))

        yield make

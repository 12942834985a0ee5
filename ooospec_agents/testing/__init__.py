"""Scripted servers on loopback for tests without a model: a target and a sidecar."""

from ooospec_agents.testing.answers import oblige
from ooospec_agents.testing.script import STREAM_SHAPES, Call, Received, Reply, StreamShape
from ooospec_agents.testing.sidecar import ScriptedSidecar
from ooospec_agents.testing.target import ScriptedTarget

__all__ = [
    "STREAM_SHAPES",
    "Call",
    "Received",
    "Reply",
    "ScriptedSidecar",
    "ScriptedTarget",
    "StreamShape",
    "oblige",
]

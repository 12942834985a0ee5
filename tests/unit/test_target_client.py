"""Tagging, as far as it goes without a socket: what is known of the target is set by hand."""

import time
from typing import Any

import pytest

from ooospec_agents.client import SidecarSettings, TargetClient
from ooospec_agents.target_status import TargetStatus
from ooospec_agents.targets import MAX_TARGETS, close_targets, target_client

TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
BODY: dict[str, Any] = {"model": "m", "messages": [], "tools": TOOLS}


def client_of(status: TargetStatus) -> TargetClient:
    client = TargetClient("http://127.0.0.1:9/v1")
    client._status.now = status
    return client


def known(plugin: bool = True) -> TargetClient:
    return client_of(TargetStatus(plugin, drafting=plugin, until=time.monotonic() + 100))


def test_a_request_with_tools_asks_for_the_report() -> None:
    assert known().xargs(BODY, {}) == {"ooospec_report": 1}


def test_the_users_own_arguments_win() -> None:
    body = {**BODY, "vllm_xargs": {"ooospec_report": 0, "ooospec": "lexical", "mine": "x"}}
    assert known().xargs(body, {}) == {"ooospec_report": 0, "ooospec": "lexical", "mine": "x"}


def test_the_users_body_is_not_changed() -> None:
    body = {**BODY, "vllm_xargs": {"mine": "x"}}
    known().xargs(body, {})
    assert body == {**BODY, "vllm_xargs": {"mine": "x"}}


@pytest.mark.parametrize("tools", [None, [], "f", {"f": 1}])
def test_without_tools_a_request_is_left_alone(tools: Any) -> None:
    assert known().xargs({**BODY, "tools": tools}, {}) is None


def test_a_target_without_the_plugin_gets_nothing() -> None:
    assert known(plugin=False).xargs(BODY, {}) is None


def test_arguments_that_are_no_object_are_left_to_the_target() -> None:
    assert known().xargs({**BODY, "vllm_xargs": "x"}, {}) is None


def test_equal_targets_are_one() -> None:
    one = target_client("http://a/v1/", SidecarSettings(), "k")
    assert target_client("http://a/v1", SidecarSettings(), "k") is one
    assert target_client("http://a/v1", SidecarSettings(), "other") is not one
    close_targets()


def test_the_oldest_target_is_forgotten() -> None:
    first = target_client("http://first/v1", SidecarSettings())
    for number in range(MAX_TARGETS):
        target_client(f"http://{number}/v1", SidecarSettings())
    assert target_client("http://first/v1", SidecarSettings()) is not first
    close_targets()

"""The fixtures that we ship, in a test suite of a user's."""

import pytest

pytest_plugins = ["pytester"]

CONFTEST = 'pytest_plugins = ["ooospec_agents.testing.fixtures"]'

TESTS = '''
from langchain_ooospec import ChatOoOSpec
from ooospec_agents.testing import Call, Reply


def look(name: str) -> str:
    """Look at a thing."""
    return name


def test_my_agent(scripted_target, scripted_sidecar):
    sidecar = scripted_sidecar({"Which tool": " 0", "value of name": " fjord"})
    target = scripted_target(Reply(calls=(Call("look", {"name": "fjord"}),), shape="burst", wait_for_hint_s=5))
    model = ChatOoOSpec(model="any", base_url=target.base_url, api_key="none", sidecar=sidecar.url)
    bound = model.bind_tools([look])
    assert model.wait_until_known()
    answer = bound.invoke("Look at the fjord")
    assert answer.tool_calls[0]["args"] == {"name": "fjord"}
    assert answer.response_metadata["ooospec"]["hint"]["used"]


def test_a_failing_target(scripted_target):
    import openai, pytest
    target = scripted_target([Reply(status=500), Reply(break_after=0), Reply(content="whole")])
    model = ChatOoOSpec(model="any", base_url=target.base_url, api_key="none", max_retries=0)
    for kind in (openai.InternalServerError, openai.APIConnectionError):
        with pytest.raises(kind):
            model.invoke("Go")
    assert model.invoke("Go").content == "whole"


def test_a_maker_makes_several(scripted_target):
    assert scripted_target().url != scripted_target().url
'''


def test_a_users_suite_runs(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(TESTS)
    pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider").assert_outcomes(passed=3)


def test_without_the_plugin_line_there_are_no_fixtures(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(TESTS)
    pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider").assert_outcomes(errors=3)

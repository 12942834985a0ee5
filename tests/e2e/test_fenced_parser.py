"""The tool parser inside vLLM's own parsing, without a server: strings cut at every position."""

from __future__ import annotations

import importlib
import importlib.util
import json
import warnings
from typing import Any

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True, scope="module")
def _vllm() -> None:
    if importlib.util.find_spec("vllm") is None:
        pytest.skip("needs vLLM")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's and vLLM's own, while they are imported
        importlib.import_module("ooospec_agents.vllm_plugin.fenced_parser")


TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
    for name in ("get_weather", "send_mail")
]
W = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
M = '{"name": "send_mail", "parameters": {"city": "Rome"}}'
WEATHER, MAIL = ("get_weather", '{"city": "Paris"}'), ("send_mail", '{"city": "Rome"}')

Outcome = tuple[str, list[tuple[str, str]]]

CASES: dict[str, tuple[str, Outcome]] = {
    "fenced": (f"```json\n{W}\n```", ("", [WEATHER])),
    "bare": (W, ("", [WEATHER])),
    "hermes": (f"<tool_call>\n{W}\n</tool_call><tool_call>\n{M}\n</tool_call>", ("", [WEATHER, MAIL])),
    "list": (f"Both:\n```json\n[{W}, {M}]\n```\nDone", ("Both:\nDone", [WEATHER, MAIL])),
    "ordinary block": ('Look:\n```json\n{"a": 1}\n```', ('Look:\n```json\n{"a": 1}\n```', [])),
    "held back at the end": ('{"name": "get_w', ('{"name": "get_w', [])),
    "cut short": ('```json\n{"name": "send_mail", "arguments": {"ci', ("", [("send_mail", '{"ci')])),
}


class Tokenizer:
    """All that the parser needs of one: nothing."""


def make(choice: Any = "auto", **change: Any) -> tuple[Any, Any]:
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
    from vllm.parser.abstract_parser import DelegatingParser

    from ooospec_agents.vllm_plugin.fenced_parser import FencedJsonToolParser

    body = {"model": "m", "messages": [], "tools": TOOLS, "tool_choice": choice, **change}
    request = ChatCompletionRequest.model_validate(body)
    parser_class = type("P", (DelegatingParser,), {"tool_parser_cls": FencedJsonToolParser})
    return parser_class(Tokenizer(), request.tools), request


def read_whole(text: str, choice: Any = "auto") -> Outcome:
    parser, request = make(choice)
    _, content, calls = parser.parse(text, request, enable_auto_tools=True)
    return content or "", [(call.name, call.arguments) for call in calls or []]


def read_stream(pieces: list[str], choice: Any = "auto") -> Outcome:
    """Read a stream as a strict client does."""
    parser, request = make(choice)
    content = ""
    calls: list[tuple[str, str]] = []
    ids = set()
    for index, piece in enumerate(pieces):
        message = parser.parse_delta(piece, [], request, [1], finished=index + 1 == len(pieces))
        if message is None:
            continue
        delta = json.loads(message.model_dump_json(exclude_unset=True))
        content += delta.get("content") or ""
        entries = delta.get("tool_calls", [])
        assert len({entry["index"] for entry in entries}) == len(entries)
        for entry in entries:
            function = entry["function"]
            assert isinstance(function["arguments"], str)
            if entry["index"] == len(calls):
                assert entry["type"] == "function"
                ids.add(entry["id"])
                calls.append((function["name"], function["arguments"]))
            else:
                assert set(entry) == {"index", "function"}
                assert set(function) == {"arguments"}
                name, arguments = calls[entry["index"]]
                calls[entry["index"]] = (name, arguments + function["arguments"])
    assert len(ids) == len(calls)
    return content, calls


@pytest.mark.parametrize("case", CASES)
def test_whole_output(case: str) -> None:
    text, expected = CASES[case]
    assert read_whole(text) == expected


@pytest.mark.parametrize("case", CASES)
def test_stream_cut_at_every_position(case: str) -> None:
    text, expected = CASES[case]
    for cut in range(len(text) + 1):
        assert read_stream([text[:cut], text[cut:]]) == expected
    assert read_stream([*text, ""]) == expected


def test_tool_choice_none_leaves_all_as_text() -> None:
    assert read_whole(W, "none") == (W, [])
    assert read_stream(list(W), "none") == (W, [])


@pytest.mark.parametrize(
    "choice",
    ["required", "auto", {"type": "function", "function": {"name": "send_mail"}}],
    ids=["required", "auto", "named"],
)
@pytest.mark.parametrize("parallel", [True, False])
def test_grammar_is_that_of_the_hermes_parser(choice: Any, parallel: bool) -> None:
    from vllm.tool_parsers.hermes_tool_parser import Hermes2ProToolParser

    ours, request = make(choice, parallel_tool_calls=parallel)
    stock, other = make(choice, parallel_tool_calls=parallel)
    stock = type("H", (type(ours),), {"tool_parser_cls": Hermes2ProToolParser})(Tokenizer(), other.tools)
    ours.adjust_request(request)
    stock.adjust_request(other)
    assert request.model_dump(exclude={"request_id"}) == other.model_dump(exclude={"request_id"})
    constrained = choice != "auto" or not parallel
    assert (request.structured_outputs is not None) is constrained


def test_parser_is_registered_under_the_name_that_the_launcher_uses() -> None:
    from vllm.tool_parsers.abstract_tool_parser import ToolParserManager

    from ooospec_agents.vllm_plugin.launch import plan_stock

    plan = plan_stock("m")
    ToolParserManager.import_tool_parser(plan.argv[plan.argv.index("--tool-parser-plugin") + 1])
    name = plan.argv[plan.argv.index("--tool-call-parser") + 1]
    assert ToolParserManager.get_tool_parser(name).__name__ == "FencedJsonToolParser"

"""What we write, vLLM's own parsers read, and its grammars of forced calls allow; without a server."""

from __future__ import annotations

import importlib
import importlib.util
import json
import warnings
from typing import Any

import pytest

from ooospec_agents.formats import FORMATS, choose_format

pytestmark = [pytest.mark.e2e, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True, scope="module")
def _vllm() -> None:
    if importlib.util.find_spec("vllm") is None:
        pytest.skip("needs vLLM")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's and vLLM's own, while they are imported
        importlib.import_module("vllm.tool_parsers")


PROPERTIES = {
    "place": {"type": "string"},
    "guests": {"type": "integer"},
    "inside": {"type": "boolean"},
    "days": {"type": "array", "items": {"type": "string"}},
    "card": {"type": "object", "properties": {"zip": {"type": "string"}, "none": {"type": "null"}}},
}
TOOLS = [
    {
        "type": "function",
        "function": {"name": name, "parameters": {"type": "object", "properties": PROPERTIES, "required": ["place"]}},
    }
    for name in ("book_table", "send_mail")
]
FULL: dict[str, Any] = {
    "place": 'Chez "Nous", l\'été',
    "guests": -4,
    "inside": True,
    "days": ["mon", "it's"],
    "card": {"zip": "0815", "none": None},
}
CALLS: list[tuple[str, dict[str, Any]]] = [("book_table", FULL), ("send_mail", {"place": "true"})]
PARSERS = ["llama3_json", "mistral", "pythonic", "llama4_pythonic", "lfm2", "olmo3", "qwen3_coder", "qwen3_xml", "mimo"]
TOKENS = (
    *("<|python_tag|>", "[TOOL_CALLS]", "[ARGS]", "<tool_call>", "</tool_call>", "<think>", "</think>"),
    *("<|tool_call_start|>", "<|tool_call_end|>", "<|im_start|>", "<|im_end|>"),
)


class Tokenizer:
    """All that the parsers need of one: which special tokens it has."""

    def __init__(self, without: str = "") -> None:
        self.tokens = {token: index for index, token in enumerate(TOKENS) if token != without}

    def get_vocab(self) -> dict[str, int]:
        return self.tokens

    def encode(self, text: str, **_: Any) -> list[int]:
        return [self.tokens[text]] if text in self.tokens else []


def request(choice: Any = "auto") -> Any:
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest

    return ChatCompletionRequest.model_validate(
        {"model": "m", "messages": [], "tools": TOOLS, "tool_choice": choice, "parallel_tool_calls": True}
    )


def parser(name: str, tokenizer: Tokenizer | None = None) -> Any:
    from vllm.tool_parsers import ToolParserManager

    return ToolParserManager.get_tool_parser(name)(tokenizer or Tokenizer(), request().tools)


def calls_in(reader: Any, text: str, choice: Any = "auto") -> list[tuple[str, Any]]:
    found = reader.extract_tool_calls(text, request(choice))
    return [(call.function.name, json.loads(call.function.arguments)) for call in found.tool_calls]


def written(wire_format: str, calls: list[tuple[str, dict[str, Any]]]) -> str:
    return "".join(segment.text for segment in FORMATS[wire_format].write(calls))


@pytest.mark.parametrize("name", PARSERS)
def test_calls_written_for_a_parser_are_read_by_it(name: str) -> None:
    wire_format = choose_format(name, "auto")
    assert wire_format is not None
    assert calls_in(parser(name), written(wire_format, CALLS)) == CALLS
    assert calls_in(parser(name), written(wire_format, [("send_mail", {})])) == [("send_mail", {})]


def test_the_other_openings_are_read_too() -> None:
    assert calls_in(parser("llama3_json"), "<|python_tag|>" + written("llama3_json", CALLS)) == CALLS
    assert calls_in(parser("llama4_pythonic"), "<|python_start|>" + written("pythonic", CALLS)) == CALLS
    old = Tokenizer(without="[ARGS]")
    assert calls_in(parser("mistral", old), written("mistral_array", CALLS)) == CALLS
    assert choose_format("mistral", "required") == "mistral_json"
    assert calls_in(parser("mistral", old), written("mistral_json", CALLS), "required") == CALLS


def test_single_quotes_are_read() -> None:
    style = FORMATS["pythonic"].profile.style()
    style.learn_value("'x'")
    text = "".join(segment.text for segment in FORMATS["pythonic"].write(CALLS, style))
    assert "'mon'" in text
    assert calls_in(parser("pythonic"), text) == CALLS


@pytest.mark.parametrize("wrong", ["hermes", "fenced"])
def test_a_parser_reads_no_other_format(wrong: str) -> None:
    assert calls_in(parser("pythonic"), written(wrong, CALLS)) == []


def accepted(name: str, choice: Any, text: str) -> bool:
    from xgrammar import Grammar
    from xgrammar.testing import _is_grammar_accept_string

    tag = parser(name).get_structural_tag(request(choice))
    assert tag is not None
    return bool(_is_grammar_accept_string(Grammar.from_structural_tag(tag), text))


NAMED = {"type": "function", "function": {"name": "book_table"}}


@pytest.mark.parametrize("choice", ["required", NAMED], ids=["required", "named"])
@pytest.mark.parametrize("name", ["hermes", "llama3_json", "qwen3_coder", "mimo"])
def test_a_forced_call_is_written_as_the_grammar_allows(name: str, choice: Any) -> None:
    wire_format = choose_format(name, choice)
    assert wire_format is not None
    assert accepted(name, choice, written(wire_format, CALLS[:1]))
    assert not accepted(name, choice, "Sure, I will.")


@pytest.mark.parametrize("name", ["pythonic", "llama4_pythonic", "lfm2", "olmo3", "xlam"])
def test_where_no_grammar_is_the_parsers_own_a_forced_call_is_plain_json(name: str) -> None:
    from vllm.tool_parsers import ToolParserManager

    kind = ToolParserManager.get_tool_parser(name)
    assert (kind.structural_tag_model, kind.supports_required_and_named) == (None, True)
    assert (choose_format(name, "required"), choose_format(name, NAMED)) == ("array", "arguments")


def test_every_parser_is_known_for_what_it_does_with_a_forced_call() -> None:
    from vllm.tool_parsers import ToolParserManager

    for name in ToolParserManager.lazy_parsers:
        kind = ToolParserManager.get_tool_parser(name)
        assert (choose_format(name, "required") == "array") == kind.supports_required_and_named, name

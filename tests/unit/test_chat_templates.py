"""Our chat templates: the model's own text without tools, a readable form of tools and calls with them."""

import json
from typing import Any

import jinja2.sandbox

from ooospec_agents.gguf_convert import CHAT_TEMPLATES


def render(messages: list[dict[str, Any]], **values: object) -> str:
    # As transformers sets its environment up.
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = json.dumps
    template = environment.from_string((CHAT_TEMPLATES / "smollm2.jinja").read_text(encoding="utf-8"))
    return template.render(messages=messages, **values)


def test_without_tools_the_text_is_the_models_own() -> None:
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    assert render(messages, add_generation_prompt=True) == (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello<|im_end|>\n<|im_start|>assistant\n"
    )


def test_the_users_system_message_replaces_the_models() -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    assert render(messages) == ("<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n")


def test_tools_stand_one_a_line_in_the_system_message() -> None:
    tools = [{"type": "function", "function": {"name": "f"}}, {"type": "function", "function": {"name": "g"}}]
    assert render([{"role": "system", "content": "S"}], tools=tools) == (
        '<|im_start|>system\nS\n\nYou can call these functions:\n{"name": "f"}\n{"name": "g"}\n'
        'To call one, write\n<tool_call>\n{"name": <function>, "arguments": <JSON object>}\n</tool_call>'
        "<|im_end|>\n"
    )


def test_calls_and_results_are_shown() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": {"a": 1}}}
    written = {"id": "2", "type": "function", "function": {"name": "g", "arguments": '{"b": 2}'}}
    messages = [
        {"role": "system", "content": "S"},
        {"role": "assistant", "content": None, "tool_calls": [call, written]},
        {"role": "tool", "content": "done", "tool_call_id": "1"},
    ]
    assert render(messages) == (
        "<|im_start|>system\nS<|im_end|>\n"
        '<|im_start|>assistant\n<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>\n'
        '<tool_call>\n{"name": "g", "arguments": {"b": 2}}\n</tool_call><|im_end|>\n'
        "<|im_start|>user\n<tool_response>\ndone\n</tool_response><|im_end|>\n"
    )

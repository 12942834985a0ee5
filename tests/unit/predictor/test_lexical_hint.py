"""The lexical guesser's hint, the baseline of every predictor."""

from ooospec_agents.catalog import Catalog
from ooospec_agents.predictor.lexical import lexical_hint


def tool(name: str, described: str, *required: str, **slots: object) -> dict[str, object]:
    parameters = {"type": "object", "properties": slots, "required": list(required)}
    return {"type": "function", "function": {"name": name, "description": described, "parameters": parameters}}


CATALOG = Catalog.from_tools(
    [
        tool("get_news", "Tells the news.", topic={"type": "string"}),
        tool(
            "get_weather",
            "Tells the weather.",
            "unit",
            unit={"type": "string", "enum": ["C", "F"], "default": "C"},
            style={"type": "string", "enum": ["long", "short"]},
        ),
    ]
)


def test_shared_words_choose_the_function_and_the_schema_gives_values() -> None:
    hint = lexical_hint(CATALOG, [{"role": "user", "content": "How is the weather?"}])
    assert hint is not None
    assert [call.name for call in hint.calls] == ["get_weather"]
    assert hint.calls[0].slots["unit"].value == "C"
    assert hint.calls[0].slots["style"].absent
    assert [call.name for call in hint.alternatives] == ["get_news"]
    assert hint.alternatives[0].slots["topic"].absent


def test_without_functions_there_is_none() -> None:
    assert lexical_hint(Catalog(), []) is None

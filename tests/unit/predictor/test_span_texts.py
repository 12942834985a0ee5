"""What the encoder reads of messages, functions and slots."""

from ooospec_agents.catalog import Function, Slot
from ooospec_agents.predictor.texts import conversation_of, function_text, slot_text


def test_the_latest_user_turn_is_whole_and_earlier_ones_are_cut() -> None:
    long = "x" * 2000
    text = conversation_of([{"role": "user", "content": "early " * 400}, {"role": "user", "content": long}])
    assert long in text
    assert "early" not in text


def test_the_system_message_is_left_out() -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    assert conversation_of(messages) == "user: Hello"


def test_names_are_read_as_words() -> None:
    assert function_text(Function("getWeather_now", "Tells it.", (Slot("cityName"),))) == (
        "get Weather now: Tells it. (city Name)"
    )


def test_a_slots_options_can_be_pointed_at() -> None:
    slot = Slot("unit", ("string",), "The unit.", options=("C", "very warm"), default="C", has_default=True)
    said = slot_text(Function("f"), slot)
    assert [(option, said.text[start:end]) for option, start, end in said.options] == [
        ("C", "C"),
        ("very warm", "very warm"),
    ]
    assert "default C;" in said.text


def test_a_truth_value_and_a_lists_items_have_options_too() -> None:
    truth = slot_text(Function("f"), Slot("on", ("boolean",)))
    assert [option for option, _, _ in truth.options] == [True, False]
    listed = slot_text(Function("f"), Slot("l", ("array",), schema={"items": {"enum": ["a", "b"]}}))
    assert [option for option, _, _ in listed.options] == ["a", "b"]

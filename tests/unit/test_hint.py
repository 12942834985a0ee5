from ooospec_agents.hint import Hint


def test_what_is_written_is_read_back() -> None:
    hint = Hint.of_call("f", {"x": 'é "q" 😀', "y": [1, None]})
    assert Hint.parse(hint.to_json()) == hint


def test_half_a_character_costs_its_slot_only() -> None:
    read = Hint.parse(Hint.of_call("f", {"x": "a\ud800", "y": 1}).to_json())
    assert {name: slot.value for name, slot in read.calls[0].slots.items()} == {"x": "a?", "y": 1}

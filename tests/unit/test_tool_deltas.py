from langchain_ooospec.tool_deltas import tidy

NAME = {"index": 0, "id": "a", "type": "function", "function": {"name": "f"}}
PIECE = {"index": 0, "function": {"arguments": '{"x":'}}


def test_name_and_arguments_of_one_call_become_one_entry() -> None:
    assert tidy([NAME, PIECE]) == [
        {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":'}}
    ]


def test_three_pieces_keep_their_order() -> None:
    rest = {"index": 0, "function": {"arguments": "1}"}}
    assert tidy([NAME, PIECE, rest])[0]["function"]["arguments"] == '{"x":1}'


def test_pieces_of_two_calls_by_turns_go_to_their_own() -> None:
    other = {"index": 1, "id": "b", "function": {"name": "g"}}
    tidied = tidy([NAME, other, PIECE, {"index": 1, "function": {"arguments": "{}"}}])
    assert [entry["function"]["arguments"] for entry in tidied] == ['{"x":', "{}"]


def test_two_ids_under_one_index_stay_two_calls() -> None:
    other = {"index": 0, "id": "b", "function": {"name": "g", "arguments": "{}"}}
    assert [entry["id"] for entry in tidy([NAME, other])] == ["a", "b"]


def test_entries_without_an_index_are_not_merged() -> None:
    bare = {"function": {"name": "f", "arguments": "{}"}}
    assert tidy([bare, bare]) == [bare, bare]


def test_an_entry_without_a_function_is_dropped() -> None:
    assert tidy([NAME, {"index": 0, "function": None}]) == [NAME]


def test_the_given_entries_are_left_as_they_were() -> None:
    entries = [dict(NAME, function={"name": "f"}), PIECE]
    tidy(entries)
    assert entries == [NAME, PIECE]

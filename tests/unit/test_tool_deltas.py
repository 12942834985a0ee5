from langchain_ooospec.tool_deltas import tidy

NAME = {"index": 0, "id": "a", "type": "function", "function": {"name": "f"}}
PIECE = {"index": 0, "function": {"arguments": '{"x":'}}


def test_name_and_arguments_of_one_call_become_one_entry() -> None:
    assert tidy({"tool_calls": [NAME, PIECE]}) == {
        "tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":'}}]
    }


def test_three_pieces_keep_their_order() -> None:
    rest = {"index": 0, "function": {"arguments": "1}"}}
    tidied = tidy({"tool_calls": [NAME, PIECE, rest]})
    assert tidied["tool_calls"][0]["function"]["arguments"] == '{"x":1}'


def test_two_ids_under_one_index_stay_two_calls() -> None:
    other = {"index": 0, "id": "b", "function": {"name": "g", "arguments": "{}"}}
    assert [entry["id"] for entry in tidy({"tool_calls": [NAME, other]})["tool_calls"]] == ["a", "b"]


def test_entries_without_an_index_are_not_merged() -> None:
    bare = {"function": {"name": "f", "arguments": "{}"}}
    assert tidy({"tool_calls": [bare, bare]})["tool_calls"] == [bare, bare]


def test_an_entry_without_a_function_is_dropped() -> None:
    assert tidy({"tool_calls": [NAME, {"index": 0, "function": None}]})["tool_calls"] == [NAME]


def test_the_given_delta_is_left_as_it_was() -> None:
    delta = {"tool_calls": [dict(NAME, function={"name": "f"}), PIECE]}
    tidy(delta)
    assert delta == {"tool_calls": [NAME, PIECE]}


def test_a_delta_without_calls_is_unchanged() -> None:
    assert tidy({"content": "hi", "tool_calls": None}) == {"content": "hi", "tool_calls": None}

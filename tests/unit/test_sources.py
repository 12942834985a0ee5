"""What each source guesses."""

from typing import Any

import pytest

from ooospec_agents.catalog import Catalog, Slot
from ooospec_agents.drafting.cursor import Cursor
from ooospec_agents.drafting.memory import MAX_CALLS_PER_FUNCTION, MAX_FUNCTIONS, MAX_OPENINGS, Memory, Stores
from ooospec_agents.drafting.sources import Guess
from ooospec_agents.drafting.sources.copying import copy_again, copy_rest, copy_text, ends_after, with_region
from ooospec_agents.drafting.sources.dates import Day, find_days, find_times, written
from ooospec_agents.drafting.sources.functions import rank_functions
from ooospec_agents.drafting.sources.lexical import LexicalValues
from ooospec_agents.drafting.sources.schema import opening_of, schema_guesses
from ooospec_agents.drafting.sources.spans import PROPER, find_spans
from ooospec_agents.formats import FLAT, FORMATS, Style


def first(conversation: str, slot: Slot) -> object:
    guesses = LexicalValues(conversation).guesses(slot)
    return guesses[0].value if guesses else None


@pytest.mark.parametrize(
    ("said", "slot", "value"),
    [
        ("user: Email it to ann@example.org today", Slot("recipient", ("string",), "mail address"), "ann@example.org"),
        ("user: Set an alarm for 7 guests", Slot("guests", ("integer",)), 7),
        ("user: It weighs 3.5 kg", Slot("weight", ("number",)), 3.5),
        ("user: It weighs 3.5 kg", Slot("count", ("integer",)), None),
        ("user: Meet on 2024-05-01 at noon", Slot("date", ("string",)), "2024-05-01"),
        ("user: Meet on May 3rd, 2024", Slot("date", ("string",)), "2024-05-03"),
        ("user: Meet on May 3rd, 2024", Slot("date", ("string",), "MM/DD/YYYY"), "05/03/2024"),
        ("user: Wake me at 7pm", Slot("time", ("string",)), "19:00"),
        ("user: Play 'Blue Train' now", Slot("track", ("string",)), "Blue Train"),
        ("user: make it Outside please", Slot("seat", ("string",), options=("inside", "outside")), "outside"),
        ("user: a table for two", Slot("guests", ("integer",)), 2),
        ("user: add 1 and 2", Slot("numbers", ("array",), schema={"items": {"type": "integer"}}), [1, 2]),
    ],
)
def test_lexical_values(said: str, slot: Slot, value: object) -> None:
    assert first(said, slot) == value


@pytest.mark.parametrize(("kind", "value"), [("integer", 40), ("string", "Ann Lee")])
def test_what_must_be_said_is_trusted_more_than_what_may_be_left_out(kind: str, value: object) -> None:
    lexical = LexicalValues("user: Please ask Ann Lee about the 40 chairs")

    def sure(required: bool) -> float:
        guesses = lexical.guesses(Slot("wanted", (kind,), required=required))
        return next(guess.confidence for guess in guesses if guess.value == value)

    assert sure(required=True) > sure(required=False)


def test_what_stands_near_the_name_is_preferred() -> None:
    said = "user: height 180 and weight 75"
    assert first(said, Slot("weight", ("integer",))) == 75
    assert first(said, Slot("height", ("integer",))) == 180


def test_functions_are_ranked_by_shared_words() -> None:
    tools = [
        {
            "type": "function",
            "function": {"name": name, "description": text, "parameters": {"type": "object", "properties": {}}},
        }
        for name, text in (("send_mail", "Send a mail"), ("get_weather", "Weather forecast of a city"))
    ]
    ranked = rank_functions(Catalog.from_tools(tools), "user: What will the weather be in Oslo?")
    assert ranked[0].value == "get_weather"
    assert sum(guess.confidence for guess in ranked) == pytest.approx(1)


def test_the_first_of_several_wishes_comes_first() -> None:
    tools = [
        {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
        for name in ("send_mail", "check_weather")
    ]
    said = "user: Check the weather in Oslo. Then send a mail."
    assert rank_functions(Catalog.from_tools(tools), said)[0].value == "check_weather"


@pytest.mark.parametrize(
    ("begun", "text", "rest"),
    [
        ("Fran", "user: fly to Francisco now", "cisco"),
        ("San Fr", "user: fly to San Francisco now", "ancisco"),
        ("Mountain", "user: a movie in mountain view", " View"),
        ("the meeting is", 'user: write "the meeting is at nine sharp"', " at nine sharp"),
        ("x", "user: axe", None),
        ("zzz", "user: nothing of that", None),
    ],
)
def test_copying(begun: str, text: str, rest: str | None) -> None:
    found = copy_rest(begun, text)
    assert (found.value if found else None) == rest


@pytest.mark.parametrize(
    ("begun", "sure"),
    [
        ("Hayward, CA", 0.95),
        ("Madrid", 0.5),
        ("Real Madrid", 0.75),
        ("Bank of", 0.2),
        ("2034", 0.12),
        ("Hayward,", 0.0),
        ("2034-", 0.0),
        ("", 0.0),
    ],
)
def test_whether_an_unknown_string_ends(begun: str, sure: float) -> None:
    assert ends_after(begun) == sure


CITY = "The city, such as San Francisco, CA"


@pytest.mark.parametrize(
    ("begun", "found", "description", "rest"),
    [
        ("Hay", "ward", CITY, "ward,"),
        ("Hayward", None, CITY, ","),
        ("Hayward", None, "City, State", ","),
        ("Hay", "ward", "The city", "ward"),
        ("Hayward", None, "The city", None),
        ("Hayward, ", "CA", CITY, "CA"),
        ("Gotham", None, CITY, None),
    ],
)
def test_a_place_goes_on_with_its_state(begun: str, found: str | None, description: str, rest: str | None) -> None:
    guess = with_region(begun, Guess(found, 0.6, "copy") if found else None, "user: to Hayward", description)
    assert (guess.value if guess else None) == rest


@pytest.mark.parametrize(("before", "rest"), [(" ", "er of a city"), ("`", "er of a city"), ("x", None)])
def test_a_word_set_apart_is_found(before: str, rest: str | None) -> None:
    guess = copy_text(f"It tells the{before}weath", "The weather of a city")
    assert (guess.value if guess else None) == rest


def test_text_that_goes_round_goes_on_round() -> None:
    guess = copy_again("Steps: 1.2.1.2.1.2.1.2.1.2.")
    assert guess is not None
    assert str(guess.value).startswith("1.2.1.2.1.2.1.2.1.2.")
    assert copy_again("Steps: 1.2.3.4.5.6.7.8.9.") is None


def test_texts_outside_calls_are_kept_once() -> None:
    memory = Memory(FLAT)
    for _ in range(2):
        cursor = Cursor(Style())
        cursor.feed('I look it up.\n```json\n{"name": "f", "arguments": {}}\n```\nThat was it.')
        memory.learn(cursor, True)
    assert list(memory.texts) == ["I look it up.\n```json", "```\nThat was it."]


def test_days_and_times_in_prose() -> None:
    assert find_days("on the 3rd of May or 2024-01-31, April 5, 2023") == [
        Day("", 5, 3, 7, 17),
        Day("2024", 1, 31, 21, 31),
        Day("2023", 4, 5, 33, 46),
    ]
    assert find_days("from 2023.10.1 or 2023/4/11, version 1.2.3") == [
        Day("2023", 10, 1, 5, 14),
        Day("2023", 4, 11, 18, 27),
    ]
    assert find_times("between 9am and 12:30 p.m. or 12am") == ["09:00", "12:30", "00:00"]


def test_a_begun_year_decides_a_day_without_one() -> None:
    assert written(Day("", 4, 5, 0, 7), "date", "2022-")[0] == "2022-04-05"


@pytest.mark.parametrize(
    ("begun", "rest"),
    [
        ("2026-03-05", "T"),  # as the example has it
        ("2026-03-05T1", "0:30:00"),  # the time that was named
        ("2026-03-05T14", ":00:00"),
        ("2026-03-05T14:15", ":00"),
        ("2026-03-05T14:15:00", ""),
    ],
)
def test_a_moment_in_iso_8601_goes_on(begun: str, rest: str) -> None:
    slot = Slot("start", ("string",), "Begin in ISO 8601, such as 2026-01-31T09:00:00.")
    guess = LexicalValues("user: Meet Ann at 10:30 am").finish(slot, begun)
    assert guess is not None
    assert guess.value == rest


@pytest.mark.parametrize(
    ("slot", "begun", "rest"),
    [
        (Slot("start_time", ("string",), "%Y-%m-%d %H:%M:%S"), "2023-03-01 ", "00:00:00"),
        (Slot("end_time", ("string",), "%Y-%m-%d %H:%M:%S"), "2023-03-31 2", "3:59:59"),
        (Slot("time", ("string",), "%Y-%m-%d %H:%M:%S"), "2023-03-02 ", "08:15:00"),  # as it was said
        (Slot("token", ("string",)), "your", "_token_here"),
    ],
)
def test_what_nobody_said_is_finished_as_targets_do(slot: Slot, begun: str, rest: str) -> None:
    guess = LexicalValues("user: From 2023-03-01 to 2023-03-31, and 2023-03-02 08:15:00").finish(slot, begun)
    assert guess is not None
    assert guess.value == rest


@pytest.mark.parametrize(
    ("name", "value"),
    [("start_time", "2023-03-01 00:00:00"), ("end_time", "2023-03-31 23:59:59")],
)
def test_a_day_is_guessed_with_its_time_where_that_is_wanted(name: str, value: str) -> None:
    slot = Slot(name, ("string",), "%Y-%m-%d %H:%M:%S")
    assert first("user: Show the data from 2023-03-01 to 2023-03-31", slot) == value


@pytest.mark.parametrize(
    ("said", "value"), [("What is (9+6)*3?", "(9 + 6) * 3"), ("Compute 3.5 + 2 - 1/4.", "3.5 + 2 - 1 / 4")]
)
def test_a_formula_is_written_with_spaces(said: str, value: str) -> None:
    assert first(f"user: {said}", Slot("formula", ("string",), "What is calculated")) == value


def test_a_date_or_a_range_is_no_formula() -> None:
    guesses = LexicalValues("user: On 12/24 or 3-4").guesses(Slot("formula", ("string",), "What is calculated"))
    assert not [guess.value for guess in guesses if " " in guess.value]


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("Go to Los Angeles. Can I get three?", "Los Angeles"),
        ("I ask Dr. Smith. Then call.", "Dr. Smith"),
        ("I read J.R.R. Tolkien. Well.", "J.R.R. Tolkien"),
        ("I bank at U.S. Bank. Hello.", "U.S. Bank"),
    ],
)
def test_a_name_ends_with_its_sentence(said: str, name: str) -> None:
    assert name in {found[0] for found in PROPER.finditer(said)}


@pytest.mark.parametrize(
    ("begun", "rest"),
    [("Intern", "ship"), ("Internship at Se", "belas Maret University"), ("Maret ", "University")],
)
def test_a_title_is_copied_from_small_letters(begun: str, rest: str) -> None:
    guess = copy_rest(begun, "user: Show Adriel's internship at sebelas maret university?", 2)
    assert guess is not None
    assert guess.value == rest


def test_a_year_that_nobody_named_is_a_late_one() -> None:
    guesses = LexicalValues("user: Papers by Ann Lee").guesses(Slot("year", ("integer",), required=True))
    assert guesses[0].value == 2023
    assert {guess.value for guess in guesses} == {2021, 2022, 2023, 2024}


def test_a_percentage_in_words_is_one_too() -> None:
    guesses = LexicalValues("user: five percent of it").guesses(Slot("annual_rate", ("number",), required=True))
    assert 0.05 in [guess.value for guess in guesses]


def test_a_formula_of_any_length_is_taken_in_parts() -> None:
    found, _ = find_spans("1+" * 2000)  # one search for all of it would take long where it fails at the end
    assert max(span.text.count("+") for span in found if span.kind == "formula") == 12


def test_a_percentage_is_a_part_of_one_first() -> None:
    said = LexicalValues("user: With an interest of 3.5% for 12 years")
    sure = {guess.value: guess.confidence for guess in said.guesses(Slot("annual_rate", ("number",)))}
    assert max(sure, key=sure.__getitem__) == 0.035
    assert sure[0.035] > sure[3.5]


def test_a_percentage_is_no_part_of_one_for_a_whole_number() -> None:
    said = LexicalValues("user: With an interest of 3% for 12 years")
    assert 0.03 not in [guess.value for guess in said.guesses(Slot("interest", ("integer",), required=True))]


def test_a_city_is_finished_with_its_state() -> None:
    wanted = "The city and state, such as Boston, MA"
    found = with_region("Los Ang", Guess("eles", 0.5, "copy"), "user: Fly to Los Angeles", wanted)
    assert found is not None
    assert found.value == "eles, CA"


@pytest.mark.parametrize(
    ("slot", "guesses"),
    [
        (Slot("a", options=("only",)), [("only", 0.95)]),
        (Slot("a", ("integer",), default=3, has_default=True), [(3, 0.5)]),
        (Slot("a", ("boolean",)), [(True, 0.5), (False, 0.3)]),
        (Slot("a", ("string",), "The city, e.g. 'Oslo'"), [("Oslo", 0.15)]),
        (Slot("a", ("string",)), []),
    ],
)
def test_schema_values(slot: Slot, guesses: list[tuple[object, float]]) -> None:
    assert [(guess.value, guess.confidence) for guess in schema_guesses(slot)] == guesses


def learn(memory: Memory, name: str, arguments: dict[str, object]) -> None:
    cursor = Cursor(memory.style.copy())
    cursor.feed("".join(segment.text for segment in FORMATS["hermes"].write([(name, arguments)])))
    memory.learn(cursor, ended=True)


def test_history_prefers_the_common_and_the_late() -> None:
    memory = Memory(FLAT)
    for city in ("Rome", "Oslo", "Oslo"):
        learn(memory, "f", {"city": city})
    assert [guess.value for guess in memory.values("f", "city")] == ["Oslo", "Rome"]
    assert memory.values("f", "other") == []


def test_trust_follows_the_record() -> None:
    memory = Memory(FLAT)
    assert memory.trusted("hint", "value", 0.8) == 0.8
    for _ in range(50):
        memory.judge("hint", "value", 0.8, right=False)
    assert memory.trusted("hint", "value", 0.8) < 0.2
    assert memory.trusted("hint", "name", 0.8) == 0.8


def test_an_ending_that_was_seen_is_remembered() -> None:
    memory = Memory(FLAT)
    learn(memory, "f", {})
    assert memory.endings.most_common(1) == [("\n</tool_call>", 1)]
    assert memory.openings.most_common(1) == [("<tool_call>\n", 1)]


def test_memory_is_bounded() -> None:
    memory = Memory(FLAT)
    for index in range(MAX_FUNCTIONS + 5):
        learn(memory, f"f{index}", {"x": index})
    for index in range(MAX_CALLS_PER_FUNCTION + 5):
        learn(memory, "last", {"x": index})
    assert memory.values("f0", "x") == []
    assert memory.filled("f0", "x") is None
    assert memory.filled("last", "x") == pytest.approx((16 + 0.5) / 17)
    for index in range(MAX_OPENINGS + 5):
        cursor = Cursor(Style())
        cursor.feed(" " * index + '{"name": "f"}' + " " * index)
        memory.learn(cursor, ended=True)
    assert max(len(memory.openings), len(memory.endings)) <= MAX_OPENINGS + 1


def test_stores_keep_the_latest() -> None:
    stores = Stores(max_entries=2)
    first_memory = stores.memory(("a",), FLAT)
    stores.memory(("b",), FLAT)
    assert stores.memory(("a",), FLAT) is first_memory
    stores.memory(("c",), FLAT)
    assert len(stores) == 2
    assert stores.memory(("a",), FLAT) is first_memory


def test_a_long_value_is_not_kept() -> None:
    memory = Memory(FLAT)
    learn(memory, "f", {"text": "x" * 1000, "n": 1})
    assert memory.values("f", "text") == []
    assert memory.values("f", "n")[0] == Guess(1, 0.5, "history")


def test_an_option_that_is_not_written_tells_no_opening() -> None:
    deep: Any = "x"
    for _ in range(40):
        deep = [deep]
    slot = Slot("s", options=("plain", deep))
    assert opening_of(slot, FLAT.style()) == ""
    assert opening_of(Slot("s", options=("plain", "plane")), FLAT.style()) == '"pla'

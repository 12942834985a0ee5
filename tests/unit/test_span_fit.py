"""Which of a conversation's values a slot has: the fit, slots that give way to each other, and whole conversations."""

from __future__ import annotations

from collections import defaultdict
from math import exp
from typing import Any

import pytest

from ooospec_agents.catalog import Catalog, Function, Slot
from ooospec_agents.drafting.conversation import conversation_text
from ooospec_agents.drafting.sources import span_fit
from ooospec_agents.drafting.sources.candidates import Feature, candidates
from ooospec_agents.drafting.sources.lexical import LexicalValues
from ooospec_agents.drafting.sources.span_fit import MOST_TOGETHER, WEIGHTS, Likely, SpanFit
from ooospec_agents.drafting.sources.wanted import Wanted

STAMP = "%Y-%m-%d %H:%M:%S"
FLIGHT = Function(
    "book_flight",
    "Books a flight from one city to another",
    (
        Slot("origin_city", ("string",), "City of departure", True),
        Slot("target_city", ("string",), "City of arrival", True),
        Slot("departure_date", ("string",), "YYYY-MM-DD", True),
        Slot("return_time", ("string",), STAMP),
        Slot("seats", ("integer",), default=1, has_default=True),
        Slot("class", ("string",), options=("economy", "business")),
        Slot("refundable", ("boolean",)),
        Slot("names", ("array",), schema={"items": {"type": "string"}}),
        Slot("options", ("object",)),
        Slot("user_id", ("string",), "Id of the user, such as 'u-17'"),
        Slot("discount", ("number",)),
    ),
)
CONVERSATIONS = (
    "user: Book business seats from Oslo to Rome on May 3rd for Ann Lee and Bob Ray, back on June 4th, 2024 at 7pm",
    "user: Fly me home\nassistant: What is your user id?\nuser: It's ab-42.\nassistant: And the city?\nuser: new york",
    'system: Be kind\nuser: Look it up\ntool: {"origin_city": "Oslo", "seats": 2, "names": ["Ann"]}\nuser: no refund',
    "user: with a discount of 3.5% for ['Ann', 'Bob'] and options {'meal': true} on 2024-05-01 at 09:30",
    "",
)


def worked_out(fit: SpanFit, wanted: Wanted, function: Function | None) -> tuple[dict[str, float], float]:
    """Each value's probability and that of none, from the features to which the weights were fitted."""
    rows = [list(fit.fixed(place, wanted)) for place in fit.places]
    for at, feature in fit.details(wanted, function):
        rows[at].append(feature)

    def worth(features: list[Feature]) -> float:
        return exp(sum(WEIGHTS.get(name, 0.0) * amount for name, amount in features))

    shares: defaultdict[str, float] = defaultdict(float)
    for one in candidates(fit.reading, fit.places, wanted):
        shares[repr(one.value)] += worth([*(rows[one.place] if one.place >= 0 else []), *one.features])
    none = worth(list(fit.none(wanted)))
    total = sum(shares.values()) + none
    return {value: share / total for value, share in shares.items()}, none / total


def shares(likely: Likely) -> dict[str, float]:
    """The probability of each value."""
    return {key: option.probability for key, option in likely.options.items()}


def first(conversation: str, function: Function) -> dict[str, Any]:
    """Of each slot the value that is guessed first."""
    lexical = LexicalValues(conversation)
    return {slot.name: next((one.value for one in lexical.guesses(slot, function)), None) for slot in function.slots}


def said(*messages: tuple[str, str]) -> str:
    return conversation_text([{"role": role, "content": text} for role, text in messages])


def function_of(properties: dict[str, Any], name: str = "f", required: tuple[str, ...] = ()) -> Function:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    tool = {"type": "function", "function": {"name": name, "description": "It does it", "parameters": schema}}
    return Catalog.from_tools([tool]).functions[0]


@pytest.fixture
def all_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """No slot gives way, and however unlikely a value is, it is kept."""
    monkeypatch.setattr(span_fit, "ROUNDS", 0)
    monkeypatch.setattr(span_fit, "LEAST", 0.0)


@pytest.mark.usefixtures("all_kept")
@pytest.mark.parametrize("conversation", CONVERSATIONS)
def test_slots_of_a_function_are_scored_by_the_features_that_were_fitted(conversation: str) -> None:
    fit = SpanFit(conversation)
    for wanted in Wanted.of(FLIGHT):
        likely = fit.of(FLIGHT)[wanted.slot.name]
        expected, none = worked_out(fit, wanted, FLIGHT)
        assert shares(likely) == pytest.approx(expected)
        assert likely.none == pytest.approx(none)


@pytest.mark.usefixtures("all_kept")
@pytest.mark.parametrize("conversation", CONVERSATIONS)
def test_a_slot_alone_is_scored_by_the_features_that_were_fitted(conversation: str) -> None:
    fit = SpanFit(conversation)
    for slot in FLIGHT.slots:
        likely = fit.alone(slot)
        expected, none = worked_out(fit, Wanted.alone(slot), None)
        assert shares(likely) == pytest.approx(expected)
        assert likely.none == pytest.approx(none)


@pytest.mark.usefixtures("all_kept")
@pytest.mark.parametrize("conversation", CONVERSATIONS)
def test_a_slot_has_one_of_its_values_or_none(conversation: str) -> None:
    for likely in SpanFit(conversation).of(FLIGHT).values():
        assert sum(shares(likely).values()) + likely.none == pytest.approx(1)


@pytest.mark.parametrize("conversation", CONVERSATIONS)
def test_slots_that_gave_way_have_one_of_their_values_or_none(conversation: str) -> None:
    for likely in SpanFit(conversation).of(FLIGHT).values():
        assert sum(shares(likely).values()) + likely.none == pytest.approx(1)


def test_a_value_that_is_hardly_likely_is_left_out() -> None:
    found = SpanFit("user: " + ", then ".join(f"{number} rooms" for number in range(90))).alone(Slot("wing"))
    assert all(share >= span_fit.LEAST for share in shares(found).values())


def test_a_value_that_suits_two_slots_is_left_to_the_one_that_it_suits_better(monkeypatch: pytest.MonkeyPatch) -> None:
    measures = tuple(Slot(name, ("integer",), required=True) for name in ("height", "weight"))
    function, key = Function("get_index", slots=measures), repr(180)
    together = SpanFit("user: The height is 180").of(function)
    monkeypatch.setattr(span_fit, "ROUNDS", 0)
    apart = SpanFit("user: The height is 180").of(function)
    assert shares(together["height"])[key] > shares(together["weight"])[key]
    assert shares(together["weight"])[key] < shares(apart["weight"])[key]
    assert together["weight"].none > apart["weight"].none


def test_two_cities_of_a_flight_are_told_apart() -> None:
    cities = Function("book_flight", "Books a flight", FLIGHT.slots[:2])
    assert first("user: Book a flight from Oslo to Rome", cities) == {"origin_city": "Oslo", "target_city": "Rome"}


def test_two_days_are_told_apart() -> None:
    slots = tuple(Slot(name, ("string",), "Date, YYYY-MM-DD", True) for name in ("check_in", "check_out"))
    found = first("user: A room from May 3rd, 2024 to May 9th, 2024", Function("book_room", "Books a room", slots))
    assert found == {"check_in": "2024-05-03", "check_out": "2024-05-09"}


def test_two_numbers_come_in_their_order() -> None:
    slots = tuple(Slot(name, ("integer",), required=True) for name in ("a", "b"))
    assert first("user: Multiply 6 and 7", Function("multiply", "Multiplies", slots)) == {"a": 6, "b": 7}


def test_a_name_and_a_password_are_told_in_answers() -> None:
    properties = {"username": {"type": "string"}, "password": {"type": "string"}}
    conversation = said(
        ("user", "Please log me in"),
        ("assistant", "Sure. What is your username?"),
        ("user", "It's jdoe88."),
        ("assistant", "Thank you. And what is the password?"),
        ("user", "hunter2x"),
    )
    function = function_of(properties, "login", ("username", "password"))
    assert first(conversation, function) == {"username": "jdoe88", "password": "hunter2x"}


def test_a_result_of_a_tool_has_the_slots_name_as_its_key() -> None:
    conversation = said(
        ("user", "Please cancel my last order, I am Ann Lee"),
        ("tool", '{"customer": "Ann Lee", "order_id": "A-1729", "total": 40}'),
        ("assistant", "I found it. Shall I cancel it?"),
        ("user", "Yes, please"),
    )
    function = function_of({"order_id": {"type": "string"}}, "cancel_order", ("order_id",))
    assert first(conversation, function) == {"order_id": "A-1729"}


def test_a_country_is_written_as_its_code_where_one_is_wanted() -> None:
    properties = {
        "country": {"type": "string", "description": "Code of the country (ISO 3166)"},
        "year": {"type": "integer"},
    }
    function = function_of(properties, "get_holidays", ("country", "year"))
    conversation = said(("user", "Tell me the public holidays of Germany in 2025, please"))
    assert first(conversation, function) == {"country": "DE", "year": 2025}


def test_a_list_in_brackets_is_a_value() -> None:
    properties = {"numbers": {"type": "array", "items": {"type": "number"}}}
    function = function_of(properties, "get_mean", ("numbers",))
    assert first("user: What is the mean of [4, 8, 15]?", function) == {"numbers": [4, 8, 15]}


def test_an_object_is_a_value() -> None:
    function = function_of({"filters": {"type": "object"}}, "search", ("filters",))
    assert first("user: Search with {'genre': 'jazz'}", function) == {"filters": {"genre": "jazz"}}


def test_a_boolean_is_less_likely_true_where_it_is_negated() -> None:
    function = function_of({"include_breakfast": {"type": "boolean"}}, "reserve_room", ("include_breakfast",))

    def sure(wish: str) -> dict[str, float]:
        return shares(SpanFit(said(("user", wish))).of(function)["include_breakfast"])

    wanted, denied = sure("Reserve a room, and include breakfast"), sure("Reserve a room, do not include breakfast")
    assert wanted["True"] > denied["True"]
    assert wanted.get("False", 0.0) < denied["False"]


def test_an_option_is_likelier_where_it_is_the_default() -> None:
    def sure(default: str) -> float:
        unit = {"type": "string", "enum": ["kelvin", "celsius"], "default": default}
        function = function_of({"unit": unit}, "get_weather")
        return shares(SpanFit("user: How warm is it?").of(function)["unit"])[repr("celsius")]

    assert sure("celsius") > sure("kelvin")


def test_a_default_is_guessed_where_nothing_is_said() -> None:
    function = function_of({"days": {"type": "integer", "default": 7}}, "get_weather")
    assert first("user: How warm is it?", function) == {"days": 7}


def test_a_function_is_looked_at_once_and_its_slots_stay_apart_from_anothers() -> None:
    lexical = LexicalValues("user: Add 4 and 5")
    one, other = (
        Function(name, slots=(Slot("a", (kind,), required=True),)) for name, kind in (("f", "integer"), ("g", "string"))
    )
    assert lexical.guesses(one.slots[0], one)[0].value == 4
    assert all(isinstance(guess.value, str) for guess in lexical.guesses(other.slots[0], other))


def test_guesses_come_likeliest_first_and_say_whether_only_the_schema_names_them() -> None:
    slot = Slot("size", ("integer",), required=True, default=1, has_default=True)
    guesses = LexicalValues("user: of size 40, or 41").guesses(slot)
    assert [guess.confidence for guess in guesses] == sorted((guess.confidence for guess in guesses), reverse=True)
    assert {guess.value: guess.source for guess in guesses} == {40: "lexical", 41: "lexical", 1: "schema"}


def test_of_many_places_the_likeliest_values_are_kept_in_order() -> None:
    said = "user: Send 'first', 'second' and 'third' to everybody who is here"
    every, two = SpanFit(said), SpanFit(said, most=2)
    kept = [place.span.text for place in two.places]
    assert len(every.places) > 2
    assert [place.span.text for place in every.places if place.span.text in kept] == kept
    assert set(kept) <= {"first", "second", "third"}


def test_of_very_many_slots_the_required_are_looked_at_together() -> None:
    slots = [Slot(f"x{at}", ("string",), required=at >= MOST_TOGETHER) for at in range(2 * MOST_TOGETHER)]
    together = SpanFit("user: go to Oslo").of(Function("f", slots=tuple(slots)))
    assert list(together) == [slot.name for slot in slots[MOST_TOGETHER:]]


def test_a_slot_that_is_not_looked_at_together_is_looked_at_alone() -> None:
    slots = (*(Slot(f"x{at}", ("boolean",), required=True) for at in range(MOST_TOGETHER)), Slot("city", ("string",)))
    said = "user: the city is Oslo"
    assert LexicalValues(said).guesses(slots[-1], Function("f", slots=slots)) == LexicalValues(said).guesses(slots[-1])


def test_a_function_suits_whose_required_parameters_have_values() -> None:
    city = Function("weather", "", (Slot("city", ("string",), required=True), Slot("code", ("integer",))))
    both = Function("trip", "", (*city.slots[:1], Slot("token", ("string",), "Secret token", required=True)))
    fit = SpanFit("user: What is the weather in the city of Oslo?")
    filled, _ = fit.suits(city)
    assert filled == pytest.approx(1 - fit.of(city)["city"].none)
    filled, _ = fit.suits(both)
    assert filled == pytest.approx(1 - (fit.of(both)["city"].none + fit.of(both)["token"].none) / 2)


def test_options_and_truth_values_are_known_before_anything_is_said() -> None:
    paint = Function("paint", "", (Slot("color", ("string",), required=True, options=("red", "blue")),))
    lamp = Function("lamp", "", (Slot("on", ("boolean",), required=True),))
    assert SpanFit("user: paint it red").suits(paint) == (0.0, 0.0)
    assert SpanFit("user: on").suits(lamp) == (0.0, 0.0)
    assert SpanFit("user: anything").suits(Function("now")) == (0.0, 0.0)


def test_what_the_last_message_says_may_be_a_value() -> None:
    city = Function("weather", "", (Slot("city", ("string",), "Name of the city", required=True),))
    fit = SpanFit("user: The city of Oslo\nassistant: Which city?\nuser: Rome")
    options = fit.of(city)["city"].options
    assert options["'Rome'"].said_last
    assert not options["'Oslo'"].said_last
    assert fit.suits(city)[1] == options["'Rome'"].probability
    assert options["'Oslo'"].probability > options["'Rome'"].probability  # it is not the likeliest of all

"""Drafts, checked against a target whose output is known."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ooospec_agents.catalog import Catalog
from ooospec_agents.drafting.budget import Budget
from ooospec_agents.drafting.conversation import conversation_text
from ooospec_agents.drafting.drafter import Drafter
from ooospec_agents.drafting.guesses import LIKELY, Guesser, LexicalGuesses
from ooospec_agents.drafting.memory import Stores
from ooospec_agents.drafting.notations import continuation_for
from ooospec_agents.drafting.piece import MAX_TEXT
from ooospec_agents.drafting.request import RequestSpec
from ooospec_agents.formats import FLAT, FORMATS, Style
from ooospec_agents.hint import CallHint, Hint, SlotHint

STOP = 0
FREE = Budget(0.0)


class Letters:
    """A tokenizer whose tokens are characters."""

    vocab_size = 0x110000

    def encode(self, text: str) -> list[int]:
        return [ord(char) for char in text]

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(map(chr, ids))


def tool(name: str, properties: dict[str, Any], required: Sequence[str] = (), description: str = "") -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


BOOK = tool(
    "book_table",
    {
        "place": {"type": "string"},
        "guests": {"type": "integer"},
        "seat": {"enum": ["inside", "outside"]},
        "note": {"type": "string"},
    },
    ["place", "guests"],
    "Book a table in a restaurant",
)
WEATHER = tool("get_weather", {"city": {"type": "string"}}, ["city"], "Weather forecast of a city")
CATALOG = Catalog.from_tools([WEATHER, BOOK])
SAID = "user: Book a table for 4 at Chez Nous please, seated outside."
ARGUMENTS = {"place": "Chez Nous", "guests": 4, "seat": "outside", "note": "by the window"}


def spec(method: str = "ooospec", **changes: Any) -> RequestSpec:
    values: dict[str, Any] = {
        "id": "r",
        "method": method,
        "wire_format": "hermes",
        "catalog": CATALOG,
        "required": True,
    }
    return RequestSpec(**{**values, "conversation": SAID, **changes})


def output(
    arguments: dict[str, Any] = ARGUMENTS,
    name: str = "book_table",
    wire_format: str = "hermes",
    style: Style | None = None,
) -> str:
    return "".join(segment.text for segment in FORMATS[wire_format].write([(name, arguments)], style))


def serve(drafter: Drafter, text: str, limit: int = 500, hints: dict[int, Hint] | None = None) -> int:
    """Decode `text` with the drafter's help as a greedy target would; returns the steps it took."""
    ids = [*Letters().encode(text), STOP]
    at = steps = 0
    while at < len(ids):
        if hints and steps in hints:
            drafter.offer(hints[steps], 0.0)
        draft = drafter.draft(limit).tokens if at else []
        kept = 0
        while kept < len(draft) and at + kept < len(ids) - 1 and draft[kept] == ids[at + kept]:
            kept += 1
        drafter.commit(ids[at : at + kept + 1])
        at += kept + 1
        steps += 1
    return steps


def drafter(request: RequestSpec, stores: Stores | None = None) -> Drafter:
    # Tokens that are characters would be dear at the price of real ones: here they cost nothing.
    return Drafter(request, Letters(), stores if stores is not None else Stores(), stop_ids=[STOP], budget=FREE)


def hint(**arguments: Any) -> Hint:
    return Hint.of_call("book_table", arguments or ARGUMENTS, 0.95)


@pytest.mark.parametrize("wire_format", sorted(FORMATS))
def test_a_right_hint_leaves_two_steps(wire_format: str) -> None:
    request = spec(wire_format=wire_format, named="book_table" if FORMATS[wire_format].bare else "")
    assert serve(drafter(request), output(wire_format=wire_format), hints={0: hint()}) == 2


def test_one_wrong_value_costs_one_step_for_each_token_of_it_that_nobody_knows() -> None:
    # "Q", then the closing quote that ends it is drafted; the rest follows at once.
    text = output({**ARGUMENTS, "place": "Q"})
    assert serve(drafter(spec()), text, hints={0: hint()}) <= 4


def test_a_wrong_name_is_left_at_once_for_the_function_that_is_written() -> None:
    wrong = Hint(
        calls=(CallHint(name="get_weather", confidence=0.9),),
        alternatives=(
            CallHint(name="book_table", slots={k: SlotHint(value=v, confidence=0.9) for k, v in ARGUMENTS.items()}),
        ),
    )
    assert serve(drafter(spec()), output(), hints={0: wrong}) == 3


def test_a_hint_of_a_function_that_is_not_bound_costs_nothing_where_one_is_known() -> None:
    unbound = Hint.of_call("cancel_table", {"id": 7}, 0.95)
    request = spec(catalog=Catalog.from_tools([BOOK]))
    assert serve(drafter(request), output(), hints={0: unbound}) == serve(drafter(request), output())


def test_without_tools_a_hint_may_name_any_function() -> None:
    request = spec(catalog=Catalog.from_tools([]))
    assert serve(drafter(request), output(), hints={0: hint()}) == 2


def test_a_hinted_value_that_its_enum_lacks_costs_nothing_where_one_is_said() -> None:
    unheard_of = hint(**{**ARGUMENTS, "seat": "on the roof"})
    assert serve(drafter(spec()), output(), hints={0: unheard_of}) == 2


def test_a_late_hint_is_in_the_very_next_draft() -> None:
    request = drafter(spec(conversation=""))
    request.commit(Letters().encode('<tool_call>\n{"name": "book_table", "arguments": {"place": "'))
    before = request.draft(500).tokens
    request.offer(hint(), 0.0)
    after = Letters().decode(request.draft(500).tokens)
    assert before == []
    assert after.startswith('Chez Nous", "guests": 4, ')


def test_the_order_and_the_gaps_of_a_complete_hint_are_kept() -> None:
    arguments = {"note": "x", "guests": 2, "place": "Y"}
    assert serve(drafter(spec()), output(arguments), hints={0: hint(**arguments)}) == 2


def test_another_layout_is_taken_up_after_its_first_gap() -> None:
    text = output(style=Style(FORMATS["fenced"].profile))
    assert serve(drafter(spec()), text, hints={0: hint()}) <= 4


def test_the_layout_of_the_last_call_is_remembered() -> None:
    stores = Stores()
    first = drafter(spec(), stores)
    serve(first, output(style=Style(FORMATS["fenced"].profile)))
    first.finish()
    assert serve(drafter(spec(), stores), output(style=Style(FORMATS["fenced"].profile)), hints={0: hint()}) == 2


def test_history_fills_what_was_the_same_before() -> None:
    stores = Stores()
    for _ in range(3):
        one = drafter(spec("toolspec"), stores)
        serve(one, output())
        one.finish()
    assert serve(drafter(spec("toolspec"), stores), output()) == 2


def test_nothing_is_learned_across_tenants_methods_scopes_or_loras() -> None:
    stores = Stores()
    one = drafter(spec("toolspec", tenant="a"), stores)
    serve(one, output())
    one.finish()
    fresh = serve(drafter(spec("toolspec", tenant="z")), output())
    assert serve(drafter(spec("toolspec", tenant="a"), stores), output()) < fresh
    for other in (spec("toolspec", tenant="b"), spec("toolspec", tenant="a", scope="s")):
        assert serve(drafter(other, stores), output()) == fresh
    lora = Drafter(spec("toolspec", tenant="a"), Letters(), stores, lora="x", stop_ids=[STOP], budget=FREE)
    assert serve(lora, output()) == fresh
    lexical = drafter(spec("lexical", tenant="a"), stores)
    assert lexical.draft(500) == drafter(spec("lexical")).draft(500)


def test_a_hint_is_ignored_by_other_methods() -> None:
    for method in ("toolspec", "lexical"):
        assert serve(drafter(spec(method)), output(), hints={0: hint()}) == serve(drafter(spec(method)), output())


@pytest.mark.parametrize("method", ["off", "ceiling"])
def test_nothing_is_drafted_or_learned(method: str) -> None:
    stores = Stores()
    request = drafter(spec(method), stores)
    assert serve(request, output(), hints={0: hint()}) == len(output()) + 1
    request.finish()
    assert stores.memory(("", "", method, "", "hermes"), FORMATS["hermes"].profile).answers == 0


def test_lexical_guesses_need_no_hint() -> None:
    request = drafter(spec("lexical"))
    serve(request, output())
    accepted = request.report()["accepted"]
    assert accepted["lexical"] >= len('"book_table"') + len("4") + len('"outside"')


def test_text_is_not_drafted_once_it_is_text() -> None:
    request = drafter(spec(required=False))
    request.commit(Letters().encode("Hello, how can I help"))
    assert request.draft(500).tokens == []


def test_a_call_after_text_is_drafted() -> None:
    request = drafter(spec(required=False, wire_format="fenced"))
    request.commit(Letters().encode("Sure.\n```js"))
    assert Letters().decode(request.draft(500).tokens).startswith('on\n{\n  "name": "book_table"')


@pytest.mark.parametrize(
    ("written", "fence"), [("I will look it up:\n\n", "```json\n{"), ("I will look it up.\n\n", "")]
)
def test_a_call_that_text_announces_is_drafted(written: str, fence: str) -> None:
    drafting = drafter(spec("lexical", required=False, wire_format="fenced"))
    drafting.commit(Letters().encode(written))
    assert Letters().decode(drafting.draft(9).tokens) == fence[:9]


def test_a_call_after_text_after_a_call_is_drafted() -> None:
    drafting = drafter(spec("lexical", required=False, wire_format="fenced"))
    drafting.commit(Letters().encode(output(wire_format="fenced") + "\n\nAnd for tomorrow\n\n```js"))
    assert Letters().decode(drafting.draft(12).tokens).startswith("on\n{")


@pytest.mark.parametrize(("shared", "rest"), [(True, " that up for you."), (False, "")])
def test_a_phrase_of_an_earlier_answer_is_drafted(shared: bool, rest: str) -> None:
    stores = Stores()
    request = spec("lexical", required=False, wire_format="fenced")
    first = drafter(request, stores)
    serve(first, "Let me look that up for you.")
    first.finish()
    second = drafter(request, stores if shared else Stores())
    second.commit(Letters().encode("Let me look"))
    assert Letters().decode(second.draft(40).tokens) == rest[: len(second.draft(40).tokens) or None]


def test_parallel_calls_of_a_hint_are_drafted_one_after_the_other() -> None:
    calls = [("get_weather", {"city": "Rome"}), ("book_table", ARGUMENTS)]
    hinted = Hint(calls=tuple(Hint.of_call(name, arguments, 0.95).calls[0] for name, arguments in calls))
    text = "".join(segment.text for segment in FORMATS["hermes"].write(calls))
    assert serve(drafter(spec()), text, hints={0: hinted}) <= 3


class JoiningLetters(Letters):
    """Letters, but a quotation mark is one token with the space before it."""

    joined = "\ue000"

    def encode(self, text: str) -> list[int]:
        return super().encode(text.replace(' "', self.joined))

    def decode(self, ids: Sequence[int]) -> str:
        return super().decode(ids).replace(self.joined, ' "')


def test_a_draft_that_stops_at_a_doubt_ends_in_the_token_that_the_target_writes_there() -> None:
    codec = JoiningLetters()
    made = Drafter(spec("lexical"), codec, Stores(), stop_ids=[STOP], budget=Budget(0.6))
    written, _, rest = output().partition('"place"')
    made.commit(codec.encode(written))
    draft = made.draft(500).tokens
    assert codec.decode(draft) == '"place": "'
    assert draft == codec.encode(f'"place"{rest}')[: len(draft)]


def test_at_a_price_that_nothing_is_worth_nothing_is_drafted() -> None:
    budget = Budget(1.0)
    made = Drafter(spec("lexical"), Letters(), Stores(), stop_ids=[STOP], budget=budget)
    made.commit(Letters().encode(output()[:30]))
    budget.serve(1)
    assert made.draft(500).tokens == []


def test_a_drafter_says_that_it_had_nothing_to_draft() -> None:
    made = drafter(spec("lexical"))
    made.commit(Letters().encode("I cannot say. "))
    assert not made.draft(50).tokens
    assert made.idle
    made.commit(Letters().encode('<tool_call>\n{"name": "'))
    assert made.draft(50).tokens
    assert not made.idle


def test_at_a_price_that_nothing_is_worth_nothing_is_thought_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    thought: list[bool] = []
    monkeypatch.setattr("ooospec_agents.drafting.expectation.Expectation.look_ahead", lambda _: thought.append(True))
    for price, times in ((1.0, 0), (0.1, 1)):
        budget = Budget(price)
        budget.serve(1)
        Drafter(spec("lexical"), Letters(), Stores(), budget=budget).think()
        assert len(thought) == times


def test_a_draft_keeps_to_its_limit() -> None:
    request = drafter(spec())
    request.offer(hint(), 0.0)
    request.commit([ord("<")])
    assert len(request.draft(7).tokens) == 7
    assert request.draft(0).tokens == []


def test_the_stop_token_ends_the_draft() -> None:
    request = drafter(spec())
    request.offer(hint(), 0.0)
    request.commit([ord("<")])
    assert request.draft(500).tokens[-1] == STOP


def test_after_the_stop_token_nothing_is_drafted() -> None:
    request = drafter(spec())
    request.commit([*Letters().encode(output()), STOP])
    assert request.draft(500).tokens == []


def test_report_counts_what_was_accepted() -> None:
    request = drafter(spec())
    steps = serve(request, output(), hints={0: hint()})
    report = request.report()
    assert report["steps"] == steps == 2
    assert report["tokens"] == len(output()) + 1 == len(report["token_sources"])
    assert sum(report["accepted"].values()) == report["tokens"] - 2
    assert report["hint"] == {
        "arrived": True,
        "at_token": 0,
        "used": True,
        "after_ms": report["hint"]["after_ms"],
    }


@settings(max_examples=60, deadline=None)
@given(
    text=st.text(max_size=60) | st.text(alphabet='{}[]":, \\natme1<tool_call>`json', max_size=80),
    cut=st.integers(1, 30),
    wire_format=st.sampled_from(sorted(FORMATS)),
)
def test_whatever_the_target_writes_drafting_goes_on(text: str, cut: int, wire_format: str) -> None:
    request = drafter(spec(wire_format=wire_format, named="book_table" if FORMATS[wire_format].bare else ""))
    request.offer(hint(), 0.0)
    for start in range(0, len(text), cut):
        request.commit(Letters().encode(text[start : start + cut]))
        draft = request.draft(40)
        assert len(draft.tokens) == len(draft.sources) <= 40
    request.finish()


@settings(max_examples=40, deadline=None)
@given(cut=st.integers(0, len(output()) - 1))
def test_wherever_the_target_stands_a_right_hint_writes_the_rest(cut: int) -> None:
    request = drafter(spec())
    text = output()
    if cut:
        request.commit(Letters().encode(text[:cut]))
    request.offer(hint(), 0.0)
    assert Letters().decode(request.draft(500).tokens[:-1]) == text[cut:]


def test_conversation_keeps_its_end() -> None:
    messages = [
        {"role": "user", "content": "a" * 50},
        {"role": "user", "content": [{"type": "text", "text": "b"}]},
        "junk",
    ]
    assert conversation_text(messages, limit=12) == "aaaa\nuser: b"


def test_conversation_tells_earlier_calls() -> None:
    call = {"function": {"name": "f", "arguments": '{"a": 1}'}}
    assert conversation_text([{"role": "assistant", "content": None, "tool_calls": [call]}]) == 'assistant: f {"a": 1}'


def test_a_key_of_another_function_is_finished() -> None:
    request = drafter(spec())
    request.commit(Letters().encode('<tool_call>\n{"name": "book_table", "arguments": {"ci'))
    assert Letters().decode(request.draft(500).tokens).startswith('ty":')


@pytest.mark.parametrize("method", ["lexical", "ooospec"])
def test_guesses_made_ahead_are_those_that_the_drafter_would_make(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    request = spec(method)
    alone = serve(drafter(request), output())
    ahead = replace(request, guesses=LexicalGuesses.of(CATALOG, SAID))
    for source in ("rank_functions", "LexicalValues.guesses"):
        monkeypatch.setattr(f"ooospec_agents.drafting.expectation.{source}", lambda *_: pytest.fail("guessed again"))
    assert serve(drafter(ahead), output()) == alone
    assert LexicalGuesses.from_data(json.loads(json.dumps(ahead.guesses.to_data()))) == ahead.guesses  # type: ignore[union-attr]


def test_of_a_function_that_is_not_likely_the_values_may_be_guessed_later(monkeypatch: pytest.MonkeyPatch) -> None:
    unlikely = [tool(f"zz{number}", {"qq": {"type": "string"}}, ["qq"]) for number in range(LIKELY + 2)]
    catalog = Catalog.from_tools([WEATHER, BOOK, *unlikely])
    guesser = Guesser(catalog, SAID)
    first = guesser.first()
    called = next(f for f in catalog.functions if (f.name, f.slots[0].name) not in first.values)
    target = (
        f'<tool_call>\n{{"name": "{called.name}", "arguments": {{"{called.slots[0].name}": "Oslo"}}}}\n</tool_call>'
    )
    alone = serve(drafter(spec(catalog=catalog)), target)
    request = drafter(spec(catalog=catalog, guesses=first))
    while (more := guesser.further()) is not None:
        first.add(more)
    monkeypatch.setattr("ooospec_agents.drafting.expectation.LexicalValues.guesses", lambda *_: pytest.fail("again"))
    assert serve(request, target) == alone


def test_values_inside_lists_and_objects_are_guessed_ahead_too(monkeypatch: pytest.MonkeyPatch) -> None:
    items = {"type": "array", "items": {"type": "object", "properties": {"city": {"type": "string"}}}}
    catalog = Catalog.from_tools([tool("visit", {"stops": items}, ["stops"])])
    target = '<tool_call>\n{"name": "visit", "arguments": {"stops": [{"city": "Oslo"}]}}\n</tool_call>'
    alone = serve(drafter(spec(catalog=catalog)), target)
    guesses = Guesser(catalog, SAID).all()
    assert ("visit", "stops[].city") in guesses.values
    monkeypatch.setattr("ooospec_agents.drafting.expectation.LexicalValues.guesses", lambda *_: pytest.fail("again"))
    assert serve(drafter(spec(catalog=catalog, guesses=guesses)), target) == alone


def test_a_list_is_drafted_on_in_the_layout_that_it_has_begun() -> None:
    catalog = Catalog.from_tools([tool("mark", {"days": {"type": "array", "items": {"type": "string"}}}, ["days"])])
    known = Hint.of_call("mark", {"days": ["mon", "tue"]}, 0.95)
    for text in ('["mon", "tue"]', '[\n      "mon",\n      "tue"\n    ]'):
        request = drafter(spec(catalog=catalog, wire_format="fenced"))
        request.offer(known, 0.0)
        head = '```json\n{\n  "name": "mark",\n  "arguments": {\n    "days": '
        request.commit(Letters().encode(head + text[:2]))
        assert Letters().decode(request.draft(500).tokens).startswith(text[2:])


def test_a_target_that_writes_the_schema_in_place_of_arguments_is_drafted_on() -> None:
    request = drafter(spec(catalog=Catalog.from_tools([tool("get_fact", {})])))
    request.commit(Letters().encode('<tool_call>\n{"name": "get_fact", "arguments": {"type'))
    assert Letters().decode(request.draft(500).tokens).startswith('": "object", "properties":')
    request.commit(Letters().encode('": "object", "properties": {"'))
    assert Letters().decode(request.draft(500).tokens).startswith('type": "string", "description": "')


def test_a_target_that_repeats_itself_is_drafted_from_its_own_output() -> None:
    request = drafter(spec(required=False, conversation="user: Count."))
    request.commit(Letters().encode("First item: a red apple. First item: a r"))
    assert Letters().decode(request.draft(500).tokens).startswith("ed apple. First item")


def test_a_value_begun_as_an_earlier_one_of_the_output_is_finished_from_it() -> None:
    request = drafter(spec(conversation="user: Do it."))
    request.commit(
        Letters().encode('<tool_call>\n{"name": "book_table", "arguments": {"place": "Zum Zoll", "note": "Zum')
    )
    assert Letters().decode(request.draft(500).tokens).startswith(' Zoll"')


def test_text_that_repeats_a_result_is_copied_word_by_word() -> None:
    said = "user: Where is it?\ntool: ORD-5: shipped on 2026-11-27, parcel 0034\nuser: So?"
    request = drafter(spec(required=False, conversation=said))
    request.commit(Letters().encode("Your order was shipped on "))
    draft = request.draft(500)
    assert Letters().decode(draft.tokens) == "2026-11-27, parcel 0034"
    assert set(draft.sources) == {"copy"}


class Tagged(Letters):
    """A tokenizer that has the tags as added tokens, as Qwen's has."""

    tags = ("<tool_call>", "</tool_call>")

    def encode(self, text: str) -> list[int]:
        for index, tag in enumerate(self.tags):
            before, found, after = text.partition(tag)
            if found:
                return [*self.encode(before), 0x10F000 + index, *self.encode(after)]
        return super().encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(self.tags[i - 0x10F000] if i >= 0x10F000 else chr(i) for i in ids)


@pytest.mark.parametrize("added", [True, False], ids=["added token", "spelled out"])
def test_the_opening_tag_goes_on_as_it_has_begun(added: bool) -> None:
    request = Drafter(spec(), Tagged(), Stores(), stop_ids=[STOP])
    ids = Tagged().encode(output()) if added else Letters().encode(output())
    request.commit(ids[:1])
    assert request.draft(20).tokens[:14] == ids[1:15]


UNUSUAL = '<tool_call>\n{"name":"book_table",  "arguments" : {"guests":4.0 ,"zip": "x"}}</tool_call>'


def test_an_output_that_is_known_is_drafted_as_it_stands() -> None:
    known = hint().model_copy(update={"output": UNUSUAL})
    assert serve(drafter(spec()), UNUSUAL, hints={0: known}) == 2
    assert serve(drafter(spec()), UNUSUAL, hints={0: hint()}) > 4


def test_an_output_that_differs_from_the_known_one_is_drafted_from_the_calls() -> None:
    known = hint().model_copy(update={"output": UNUSUAL})
    assert serve(drafter(spec()), output(), hints={0: known}) == 3


def test_a_known_output_longer_than_one_draft_is_drafted_on() -> None:
    text = "It is said that " + "the rain in Spain stays mainly in the plain, " * 40
    known = Hint(no_call=1.0, output=text)
    assert serve(drafter(spec(required=False)), text, hints={0: known}) <= 2 + len(text) / MAX_TEXT


def test_arguments_laid_out_unexpectedly_cost_one_step() -> None:
    style = Style(FLAT)
    style.learn("open", 2, "\n    ")
    assert serve(drafter(spec()), output(style=style), hints={0: hint()}) == 3


@pytest.mark.parametrize("added", [True, False], ids=["added token", "spelled out"])
def test_closing_tags_are_written_as_the_opening_one_was(added: bool) -> None:
    request = Drafter(spec(), Tagged(), Stores(), stop_ids=[STOP])
    body = output().removesuffix("\n</tool_call>")
    request.commit(Tagged().encode(body) if added else Letters().encode(body))
    ending = "\n</tool_call>"
    assert request.draft(500).tokens == [*(Tagged().encode(ending) if added else Letters().encode(ending)), STOP]


def test_a_target_that_repeats_a_schema_is_drafted_from_it() -> None:
    request = drafter(spec())
    request.commit(
        Letters().encode(
            '<tool_call>\n{"name": "book_table", "arguments": {"type": "object", "properties": {"place": {"type"'
        )
    )
    assert Letters().decode(request.draft(500).tokens).startswith(': "string"}, "guests": {"type": "integer"}')
    blind = drafter(spec("toolspec"))
    blind.commit(
        Letters().encode(
            '<tool_call>\n{"name": "book_table", "arguments": {"type": "object", "properties": {"place": {"type"'
        )
    )
    assert not Letters().decode(blind.draft(500).tokens).startswith(': "string"}, "guests"')


def test_a_hint_that_comes_while_the_target_agrees_replaces_what_was_expected() -> None:
    request, text = drafter(spec()), output()
    begun = text.index("Chez")
    request.commit(Letters().encode(text[:begun]))
    assert Letters().decode(request.draft(3).tokens) == text[begun : begun + 3]
    request.commit(Letters().encode(text[begun : begun + 4]))
    request.offer(hint(**{**ARGUMENTS, "guests": 77}), 0.0)
    assert '"guests": 77' in Letters().decode(request.draft(500).tokens)


@pytest.mark.parametrize(("place", "thoughts"), [("Chez Nous", 1), ("Chez Non", 2)])
def test_agreement_needs_no_second_thought_unless_a_source_was_wrong(
    place: str, thoughts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    count: list[Any] = []
    monkeypatch.setattr(
        "ooospec_agents.drafting.drafter.continuation_for",
        lambda *known: count.append(known) or continuation_for(*known),
    )
    request, text = drafter(spec()), output()
    request.offer(hint(**{**ARGUMENTS, "place": place}), 0.0)
    request.commit(Letters().encode(text[: text.index('",', text.index("Chez"))]))
    assert Letters().decode(request.draft(3).tokens) == '", '
    request.commit(Letters().encode('", "'))
    assert Letters().decode(request.draft(9).tokens) == 'guests": '
    assert len(count) == thoughts


def test_an_expectation_that_was_not_drafted_from_is_not_gone_on_with() -> None:
    # The last draft's plan stands at an earlier place: the letter that comes now only looks like its next one.
    request, text = drafter(spec()), output()
    begun = text.index("Chez")
    request.commit(Letters().encode(text[:begun]))
    assert Letters().decode(request.draft(1).tokens) == "C"
    request.commit(Letters().encode("Ch"))
    request.commit(Letters().encode("C"))
    assert not Letters().decode(request.draft(500).tokens).startswith("hez Nous")


@pytest.mark.parametrize("required", [True, False], ids=["required", "auto"])
def test_before_the_first_token_tags_are_expected_as_a_grammar_or_the_target_writes_them(required: bool) -> None:
    """A grammar takes the tag for text; left to itself the target writes its added token."""
    request = Drafter(replace(spec(), required=required), Tagged(), Stores(), stop_ids=[STOP])
    request.think()
    ids = Letters().encode(output()) if required else Tagged().encode(output())
    request._planned = lambda: None  # type: ignore[method-assign]
    request.commit(ids[:1])
    assert request.draft(8).tokens == ids[1:9]

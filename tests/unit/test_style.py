"""Layout and values as a target writes them."""

import pytest

from ooospec_agents.formats import FLAT, INDENTED, Style
from ooospec_agents.formats.style import Profile


def test_flat_style_writes_values_on_one_line() -> None:
    assert Style(FLAT).render({"a": [1, 2.5, None], "b": {"c": True}}) == '{"a": [1, 2.5, null], "b": {"c": true}}'


def test_indented_style_indents_values_below_the_arguments() -> None:
    text = '{\n      "a": [\n        1\n      ]\n    }'
    assert Style(INDENTED, lists=True).render({"a": [1]}) == text


def test_text_beyond_ascii_stays_as_it_is() -> None:
    assert Style().render('你好 "q"') == '"你好 \\"q\\""'


def test_first_gap_tells_the_whole_layout() -> None:
    style = Style(FLAT)
    style.learn("open", 1, "\n    ")
    assert style.gap("open", 2) == "\n        "
    assert style.gap("close", 1) == "\n"


def test_a_gap_seen_outweighs_the_layout() -> None:
    style = Style(FLAT)
    style.learn("colon", 2, "")
    assert (style.gap("colon", 2), style.gap("colon", 1)) == ("", " ")


def test_arguments_may_be_laid_out_below_a_call_on_one_line() -> None:
    style = Style(FLAT)
    style.learn("open", 1, "")
    style.learn("open", 2, "\n    ")
    assert style.gap("comma", 2) == "\n    "
    assert (style.gap("close", 2), style.gap("close", 1)) == ("\n", "")
    assert style.render({"a": 1}) == '{\n        "a": 1\n    }'


def test_a_new_layout_forgets_the_gaps_of_the_old_one() -> None:
    style = Style(FLAT)
    style.learn("comma", 2, " ")
    style.learn("open", 2, "\n  ")
    assert style.gap("comma", 2) == "\n  "


def test_short_lists_of_an_indented_layout_stand_on_one_line_until_one_was_seen_indented() -> None:
    style = Style(INDENTED)
    assert style.render([1, 2]) == "[1, 2]"
    assert "\n" in style.render(["a word or two"] * 8)
    style.learn_value("[\n      1]")
    assert style.render([1, 2]) == "[\n      1,\n      2\n    ]"
    style.learn_value("[1]")
    assert "\n" not in style.render(["a word or two"] * 8)


@pytest.mark.parametrize(("begun", "whole"), [("\n", "\n    "), ("\n  ", "\n    "), ("\n     ", "\n     "), ("", "")])
def test_an_indentation_that_has_begun_goes_on_to_a_common_one(begun: str, whole: str) -> None:
    assert Style(FLAT).indented(2, begun) == whole


def test_a_copy_learns_alone() -> None:
    style = Style(FLAT)
    style.copy().learn("colon", 2, "")
    assert style.gap("colon", 2) == " "


def test_whitespace_without_end_is_no_habit() -> None:
    style = Style(FLAT)
    style.learn("comma", 2, " " * 1000)
    assert style.gap("comma", 2) == " "


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object()])
def test_what_is_no_json_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"JSON"):
        Style().render(value)


@pytest.mark.parametrize("layout", [FLAT, INDENTED])
def test_a_value_nested_too_deep_is_not_written(layout: Profile) -> None:
    def nested(depth: int) -> object:
        value: object = 1
        for _ in range(depth):
            value = [value]
        return value

    assert layout.style().render(nested(20)).count("[") == 20
    for depth in (21, 500):
        with pytest.raises(ValueError, match="nested deeper than 20"):
            layout.style().render(nested(depth))

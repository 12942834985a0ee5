"""Values without any model: spans of the conversation that suit a slot, options and dates that it names."""

from __future__ import annotations

from functools import cached_property

from ooospec_agents.catalog import Function, Slot
from ooospec_agents.drafting.sources import Guess
from ooospec_agents.drafting.sources.dates import MOMENT, Day, find_days, find_times, punctuated, written
from ooospec_agents.drafting.sources.reading import is_solid
from ooospec_agents.drafting.sources.schema import schema_guesses
from ooospec_agents.drafting.sources.span_fit import Likely, SpanFit
from ooospec_agents.drafting.sources.wanted import about, wants_last

MAX_GUESSES = 6
PLACEHOLDER = 0.6
"""Probability that a string that begins as a placeholder is one: targets that know no token write "your_token_here"."""


class LexicalValues:
    """Values for slots from the spans of one conversation.

    Args:
        conversation: The messages as text, newest last.

    Attributes:
        fit: How well the conversation's spans suit a slot.
    """

    def __init__(self, conversation: str) -> None:
        self.fit = SpanFit(conversation)

    def look_ahead(self) -> None:
        """Read the conversation now; otherwise it is read when it is first asked about."""
        self.fit.read()
        _ = self._days, self._times, self._lowered

    def guesses(self, slot: Slot, function: Function | None = None) -> list[Guess]:
        """A few values for a slot, the likeliest first; plain ones that the schema names among them.

        Args:
            slot: The slot.
            function: Its function, whose other slots want values, too; None for a parameter inside a value.
        """
        if len(slot.options) == 1:
            return schema_guesses(slot)
        likely = self._likely(slot, function)
        best = sorted(likely.options.values(), key=lambda option: -option.probability)[:MAX_GUESSES]
        return [Guess(option.value, option.probability, "schema" if option.of_schema else "lexical") for option in best]

    def nothing(self, slot: Slot, function: Function) -> float:
        """Probability that a slot of a function has another value than those guessed, or none."""
        return self._likely(slot, function).none

    def _likely(self, slot: Slot, function: Function | None) -> Likely:
        if function is not None:
            together = self.fit.of(function)
            if slot.name in together:
                return together[slot.name]
        return self.fit.alone(slot)

    def finish(self, slot: Slot | None, begun: str) -> Guess | None:
        """The rest of a string that begins with `begun`, from a date, a time or a span that begins so."""
        said = about(slot) if slot is not None else ""
        if begun[:1].isdigit():
            for text in self._moments_from(begun, said):
                if text.startswith(begun) and len(text) > len(begun):
                    return Guess(text[len(begun) :], 0.5, "lexical")
            known = self._span_from(begun) if MOMENT.match(begun) else None
            rest = punctuated(begun, said, slot is not None and wants_last(slot)) if known is None else None
            if rest is not None:
                return Guess(rest, 0.75, "lexical")
        if slot is not None and (placeholder := f"your_{slot.name}_here").startswith(begun) and len(begun) > 2:
            return Guess(placeholder[len(begun) :], PLACEHOLDER, "lexical")
        return self._span_from(begun)

    def _span_from(self, begun: str) -> Guess | None:
        low = begun.lower()
        fitting = [text for lowered, text in self._lowered if len(text) > len(begun) and lowered.startswith(low)]
        return Guess(fitting[0][len(begun) :], 0.5 if len(fitting) == 1 else 0.35, "lexical") if fitting else None

    @cached_property
    def _lowered(self) -> list[tuple[str, str]]:
        """Of each text that is no phrase its lower case, and as it stands."""
        texts = [place.span.text for place in self.fit.reading.places if is_solid(place.span)]
        return [(text.lower(), text) for text in dict.fromkeys(texts)]

    @cached_property
    def _days(self) -> list[Day]:
        return find_days(self.fit.reading.text)

    @cached_property
    def _times(self) -> list[str]:
        return find_times(self.fit.reading.text)

    def _moments_from(self, begun: str, said: str) -> list[str]:
        """Days and times of the conversation as a value may have them that begins with `begun`."""
        moment = MOMENT.match(begun)
        if moment is not None:
            return [f"{moment[0]}{time}:00" for time in self._times]
        days = [text for day in self._days for text in written(day, said, begun)]
        return days + [text for time in self._times for text in (time, time + ":00")]

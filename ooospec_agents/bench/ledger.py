"""The rules of the comparison, checked: no method sees an answer before it is asked."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ooospec_agents.bench.data import Item
from ooospec_agents.bench.methods import BenchMethod
from ooospec_agents.bench.requests import Answer

Decode = Callable[[Sequence[int]], str]
"""The target's tokenizer: ids to text."""

MARKUP = re.compile(r"[\s\"'\\\\{}\[\]:,]+")
"""What a remembered value may be written with otherwise: layout, quotes and escapes."""


class Leak(AssertionError):
    """A method saw an answer before it was asked: the run is worthless."""


@dataclass
class Ledger:
    """Checks, from what was sent and from the draft log of each answer, that no request could know its own answer.

    A store is named by its scope (ours) or by its server's run (vLLM's suffix decoding). Cold, each holds nothing.
    Warm, it holds what was put into it: `fill`, and the requests answered since; a request's own call is never among
    them, and every accepted token that came from memory must stand in one of those calls.

    Attributes:
        cold: Whether every request must have stores of its own, hence an empty history.
        decode: The target's tokenizer; None: remembered tokens are not traced to their calls.
    """

    cold: bool = True
    decode: Decode | None = None
    _seen: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    _said: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def fill(self, store: str, item: Item, answer: Answer) -> None:
        """Note an answer that was put into a store."""
        self._seen[store].add(fingerprint(item))
        self._said[store].append(bare("".join(f"{call['name']} {call['arguments']}" for call in answer.calls)))

    def check(self, method: BenchMethod, item: Item, xargs: dict[str, Any], answer: Answer, store: str) -> None:
        """Check one timed request, then note it as known to its store.

        Args:
            method: How it was answered.
            item: The request.
            xargs: Its `vllm_xargs`.
            answer: What came back, with its report.
            store: Name of the store that it drew from, and was added to.

        Raises:
            Leak: Its store may hold the answer, an answer was sent along, or accepted tokens came from a source that
                must know nothing.
        """
        if not method.remembers and method.server != "ours":
            return
        where = f"method {method.name!r}, request {item.id!r}"
        if not store or fingerprint(item) in self._seen[store] or (self.cold and self._seen[store]):
            msg = f"{where}: store {store!r} was used before, so it may hold the answer"
            raise Leak(msg)
        if method.server == "ours":
            self._check_ours(where, method, xargs, answer, store)
        self.fill(store, item, answer)

    def _check_ours(self, where: str, method: BenchMethod, xargs: dict[str, Any], answer: Answer, store: str) -> None:
        report = answer.report or {}
        if xargs.get("ooospec_scope") != store:
            msg = f"{where}: scope {xargs.get('ooospec_scope')!r} is not its store {store!r}"
            raise Leak(msg)
        if not method.given_answer and {"ooospec_hint", "ooospec_replay"} & set(xargs):
            msg = f"{where}: an answer was sent along with the request"
            raise Leak(msg)
        drafted = {source for source, count in (report.get("drafted") or {}).items() if count}
        told = (drafted | set(report.get("token_sources") or ())) & self._forbidden(method)
        if told:
            msg = f"{where}: tokens were drafted from {sorted(told)}, which must know nothing here"
            raise Leak(msg)
        said = (report.get("hint") or {}).get("said") or {}
        if said.get("source") == "bench" and not method.given_answer:
            msg = f"{where}: its hint was made from a recorded answer"
            raise Leak(msg)
        if not self.cold and self.decode is not None:
            for text in remembered(answer, self.decode):
                if not any(text in known for known in self._said[store]):
                    msg = f"{where}: {text!r} was drafted from history, and no earlier call of its store says that"
                    raise Leak(msg)

    def _forbidden(self, method: BenchMethod) -> set[str]:
        """Sources that must know nothing of this method's requests."""
        return (
            ({"history"} if self.cold else set())
            | (set() if method.hint not in ("", "none") else {"hint"})
            | (set() if method.replay else {"replay"})
        )


def remembered(answer: Answer, decode: Decode) -> Iterator[str]:
    """The stretches of an output that were accepted from history, bare of layout and quotes."""
    sources = (answer.report or {}).get("token_sources") or []
    begin = None
    for at, source in enumerate([*sources, ""]):
        if source == "history" and begin is None:
            begin = at
        elif source != "history" and begin is not None:
            if text := bare(decode(answer.token_ids[begin:at])):
                yield text
            begin = None


def bare(text: str) -> str:
    """A text without layout, quotes and escapes: how a value is written may differ from call to call."""
    return MARKUP.sub("", text)


def fingerprint(item: Item) -> str:
    """What makes two requests the same one, whatever their ids: what the user said last, and before."""
    return repr([(message.get("role"), message.get("content")) for message in item.messages])

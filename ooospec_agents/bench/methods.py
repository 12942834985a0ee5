"""The methods that a paired run compares: which server answers, how it drafts, what hint goes along."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from ooospec_agents.bench.data import Item
from ooospec_agents.bench.hints import calls_of, degraded_hint, gold_hint, hint_of
from ooospec_agents.bench.requests import Answer

Kind = Literal["stock", "ours", "suffix", "ngram"]
"""Which server answers: stock vLLM, ours, or stock vLLM with one of its own drafters."""

HintSource = Literal["", "span", "sidecar", "gold", "perfect", "degraded"]


class UnknownMethod(ValueError):
    """A method name that no method has."""


@dataclass(frozen=True)
class BenchMethod:
    """One way to answer a request.

    Attributes:
        name: As the results call it.
        server: Which server answers.
        drafting: Our `vllm_xargs.ooospec` value, "" on other servers.
        hint: Where its hint comes from, "" for none.
        right: With "degraded": the probability that a slot is right.
        replay: Whether recorded token ids are sent along (the ceiling).
    """

    name: str
    server: Kind
    drafting: str = ""
    hint: HintSource = ""
    right: float = 1.0
    replay: bool = False

    @property
    def needs_recording(self) -> bool:
        """Whether the plain output must be known before the request is sent: a limit, not a method."""
        return self.replay or self.hint in {"perfect", "degraded"}

    @property
    def given_answer(self) -> bool:
        """Whether something of an answer is sent along by design."""
        return self.needs_recording or self.hint == "gold"

    def xargs(self, item: Item, plain: Answer | None, scope: str, seed: str = "0") -> dict[str, Any]:
        """The `vllm_xargs` of one timed request.

        Args:
            item: The request.
            plain: The recorded plain answer, for methods that need it.
            scope: Name of the stores that it draws from and adds to.
            seed: Of a degraded hint.
        """
        if self.server != "ours":
            return {}
        xargs: dict[str, Any] = {"ooospec": self.drafting, "ooospec_scope": scope, "ooospec_report": 1}
        if self.hint == "gold":
            xargs["ooospec_hint"] = gold_hint(item).to_json()
        elif self.hint == "perfect" and plain:
            xargs["ooospec_hint"] = hint_of(calls_of(plain)).to_json()
        elif self.hint == "degraded" and plain:
            xargs["ooospec_hint"] = degraded_hint(calls_of(plain), item, self.right, seed).to_json()
        if self.replay and plain:
            xargs["ooospec_replay"] = plain.token_ids
        return xargs


_METHODS = {
    method.name: method
    for method in (
        BenchMethod("ar", "stock"),
        BenchMethod("suffix", "suffix"),
        BenchMethod("ngram", "ngram"),
        BenchMethod("off", "ours", "off"),
        BenchMethod("toolspec", "ours", "toolspec"),
        BenchMethod("lexical", "ours", "lexical"),
        BenchMethod("span", "ours", "ooospec", "span"),
        BenchMethod("ooospec", "ours", "ooospec", "sidecar"),
        BenchMethod("gold", "ours", "ooospec", "gold"),
        BenchMethod("perfect", "ours", "ooospec", "perfect"),
        BenchMethod("ceiling", "ours", "ceiling", replay=True),
    )
}


def method_named(name: str) -> BenchMethod:
    """The method of that name; "degraded:0.64" is a hint whose slots are right with that probability.

    Raises:
        UnknownMethod: There is none.
    """
    head, _, share = name.partition(":")
    try:
        if head == "degraded" and 0 <= float(share) <= 1:
            return BenchMethod(name, "ours", "ooospec", "degraded", right=float(share))
    except ValueError:
        pass
    if name not in _METHODS:
        msg = f"Unknown method {name!r}: use one of {', '.join(_METHODS)} or degraded:P with P from 0 to 1."
        raise UnknownMethod(msg)
    return _METHODS[name]


class Leak(AssertionError):
    """A method saw an answer before it was asked: the run is worthless."""


@dataclass
class Ledger:
    """Checks, from scopes and reports, that no timed request could know an answer of itself.

    Attributes:
        cold: Whether every request must have stores of its own, hence an empty history.
        seen: Pairs of a scope and an item ("" for any, where cold) whose answer the scope's stores may hold.
    """

    cold: bool = True
    seen: set[tuple[str, str]] = field(default_factory=set)

    def key(self, scope: str, dataset: str, item: str) -> tuple[str, str]:
        """What may be used once."""
        return scope, "" if self.cold else f"{dataset}/{item}"

    def check(self, method: BenchMethod, item: Item, xargs: dict[str, Any], answer: Answer) -> None:
        """Note one timed request.

        Raises:
            Leak: Its stores were not its own, or a token came from a source that must be empty.
        """
        if method.server != "ours":
            return
        where = f"method {method.name!r}, request {item.id!r}"
        scope = xargs.get("ooospec_scope", "")
        if not scope or self.key(scope, item.dataset, item.id) in self.seen:
            msg = f"{where}: scope {scope!r} was used before, so its stores may hold the answer"
            raise Leak(msg)
        self.seen.add(self.key(scope, item.dataset, item.id))
        report = answer.report or {}
        drafted = {source for source, n in (report.get("drafted") or {}).items() if n}
        told = drafted & self._forbidden(method)
        if told:
            msg = f"{where}: tokens were drafted from {sorted(told)}, which must know nothing here"
            raise Leak(msg)
        if not method.given_answer and {"ooospec_hint", "ooospec_replay"} & set(xargs):
            msg = f"{where}: an answer was sent along with the request"
            raise Leak(msg)

    def _forbidden(self, method: BenchMethod) -> set[str]:
        """Sources that must be empty for this method."""
        return (
            ({"history"} if self.cold else set())
            | (set() if method.hint else {"hint"})
            | (set() if method.replay else {"replay"})
        )

"""The methods that a paired run compares: which server answers, how it drafts, what hint goes along."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ooospec_agents.bench.data import Item
from ooospec_agents.bench.hints import CERTAIN, calls_of, degraded_hint, gold_hint, hint_of, wrong_hint
from ooospec_agents.bench.requests import Answer

Kind = str
"""Which server answers: "stock" vLLM, "ours", or stock vLLM with a drafter of its own (a key of `DRAFTERS`)."""

HintSource = Literal["", "span", "sidecar", "gold", "perfect", "values", "wrong", "none", "degraded"]
"""Where a method's hint comes from. "perfect": the plain output, as written; "values": its calls' names and values."""

DRAFTERS: Mapping[Kind, Mapping[str, Any]] = {
    "ngram": {"method": "ngram", "num_speculative_tokens": 8, "prompt_lookup_min": 2, "prompt_lookup_max": 5},
    "suffix": {"method": "suffix"},
    "suffix-bold": {"method": "suffix", "suffix_decoding_max_spec_factor": 2.0},
    "suffix-bolder": {
        "method": "suffix",
        "suffix_decoding_max_spec_factor": 4.0,
        "suffix_decoding_min_token_prob": 0.05,
    },
    "suffix-deep": {
        "method": "suffix",
        "suffix_decoding_max_tree_depth": 40,
        "suffix_decoding_max_spec_factor": 4.0,
    },
}
"""vLLM's own drafters by name: `--speculative-config`. "suffix" has its defaults; the other three are settings of which
the best is found on data that is not measured."""


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
        right: With "degraded": the share of valued slots that are kept.
        replay: Whether recorded token ids are sent along (the ceiling).
        beside: Whether its sidecar runs beside the target, also where a run replays recorded answers to others.
    """

    name: str
    server: Kind
    drafting: str = ""
    hint: HintSource = ""
    right: float = 1.0
    replay: bool = False
    beside: bool = False

    @property
    def needs_recording(self) -> bool:
        """Whether the plain output must be known before the request is sent: a limit, not a method."""
        return self.replay or self.hint in {"perfect", "values", "degraded", "wrong"}

    @property
    def remembers(self) -> bool:
        """Whether its server learns from what it answers."""
        if self.server == "ours":
            return self.drafting not in ("off", "ceiling")
        return self.server.startswith("suffix")

    @property
    def row_name(self) -> str:
        """The method's name in a result row, where the hint's origin has a field of its own."""
        return "ooospec" if self.drafting == "ooospec" and self.hint not in {"perfect", "values"} else self.name

    @property
    def hints(self) -> str:
        """Where its hints come from, as `--hints` names it; "" where it takes none."""
        return self.name if self.hint == "degraded" else self.hint

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
            known = hint_of(calls_of(plain), confidence=CERTAIN).model_copy(update={"output": plain.text})
            xargs["ooospec_hint"] = known.to_json()
        elif self.hint == "values" and plain:
            xargs["ooospec_hint"] = hint_of(calls_of(plain), confidence=CERTAIN).to_json()
        elif self.hint == "wrong" and plain:
            xargs["ooospec_hint"] = wrong_hint(calls_of(plain), item).to_json()
        elif self.hint == "degraded" and plain:
            xargs["ooospec_hint"] = degraded_hint(calls_of(plain), item, self.right, seed).to_json()
        if self.replay and plain:
            xargs["ooospec_replay"] = plain.token_ids
        return xargs


_METHODS = {
    method.name: method
    for method in (
        BenchMethod("ar", "stock"),
        *(BenchMethod(name, name) for name in DRAFTERS),
        BenchMethod("off", "ours", "off"),
        BenchMethod("toolspec", "ours", "toolspec"),
        BenchMethod("lexical", "ours", "lexical"),
        BenchMethod("span", "ours", "ooospec", "span"),
        BenchMethod("ooospec", "ours", "ooospec", "sidecar"),
        BenchMethod("ooospec-shared", "ours", "ooospec", "sidecar", beside=True),
        BenchMethod("gold", "ours", "ooospec", "gold"),
        BenchMethod("wrong", "ours", "ooospec", "wrong"),
        BenchMethod("none", "ours", "ooospec", "none"),
        BenchMethod("perfect", "ours", "ooospec", "perfect"),
        BenchMethod("perfect-values", "ours", "ooospec", "values"),
        BenchMethod("ceiling", "ours", "ceiling", replay=True),
    )
}


def with_hints(names: list[str], hints: list[str]) -> list[str]:
    """Method names with "ooospec" replaced by the methods of these hint origins ("sidecar": itself)."""
    origins = ["ooospec" if origin == "sidecar" else origin for origin in hints] or ["ooospec"]
    return list(dict.fromkeys(name for asked in names for name in (origins if asked == "ooospec" else [asked])))


def with_settings(names: list[str], setting: str) -> list[str]:
    """Method names with a second "ooospec", whose sidecar runs beside the target, where a run has both settings."""
    if setting != "both":
        return names
    return [added for name in names for added in ([name, "ooospec-shared"] if name == "ooospec" else [name])]


def setting_of(method: BenchMethod, setting: str) -> str:
    """The setting that a method's rows speak of, in a run of this setting."""
    if setting != "both" or method.hint != "sidecar":
        return setting
    return "shared" if method.beside else "own"


def method_named(name: str) -> BenchMethod:
    """The method of that name; "degraded:0.64" is ours with hints that keep this share of the right values.

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

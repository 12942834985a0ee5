"""What the drafter must know of one request before its first token: made in the API process, read in the worker."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

from ooospec_agents.catalog import Catalog
from ooospec_agents.drafting.guesses import LexicalGuesses

Method = Literal["off", "toolspec", "lexical", "ooospec", "ceiling"]
"""How a request is drafted.

"off": not at all, and nothing is learned from it. "toolspec": schema text and earlier calls. "lexical": those, copies
from the conversation and guesses without a model. "ooospec": all of those and hints. "ceiling": recorded token ids are
replayed (measurements only).
"""
METHODS: tuple[str, ...] = get_args(Method)

MAX_CONVERSATION_CHARS = 16_384
"""Characters of the conversation kept for copying, counted from its end."""


@dataclass(frozen=True)
class RequestSpec:
    """One request, as the drafter sees it.

    Attributes:
        id: The request's own unguessable id; hints and reports carry it.
        tenant: Whose request it is; stores are never shared between tenants.
        scope: A store of the client's own inside its tenant's, "" for the common one.
        method: How to draft it.
        wire_format: Name of the wire format that the target is expected to write (`ooospec_agents.formats`).
        catalog: The functions bound to it.
        required: Whether the output must be a call ("required", or a named tool).
        named: The function that the request forces, or "".
        conversation: The messages as text, newest last, at most `MAX_CONVERSATION_CHARS` from the end.
        parallel: Whether several calls are allowed.
        reply_to: Local socket address that wants the report, or "".
        guesses: Lexical guesses made ahead, or None: they are made when they are needed.
    """

    id: str
    tenant: str = ""
    scope: str = ""
    method: Method = "ooospec"
    wire_format: str = "json"
    catalog: Catalog = field(default_factory=Catalog)
    required: bool = False
    named: str = ""
    conversation: str = ""
    parallel: bool = True
    reply_to: str = ""
    guesses: LexicalGuesses | None = None

"""What the API process and the worker process say to each other: four JSON messages over a local socket."""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from ooospec_agents.catalog import Catalog, Function, Slot
from ooospec_agents.drafting.guesses import LexicalGuesses
from ooospec_agents.drafting.request import METHODS, RequestSpec
from ooospec_agents.hint import Hint

LOGGER = "vllm.ooospec"
"""Our logger in vLLM's processes: below vLLM's own, whose handlers are the only ones there."""
MAX_MESSAGE_BYTES = 256 * 1024
"""Largest message either side sends or reads: parsing one inside an engine step must stay quick."""
SENDER_CATALOGS = 32
"""Catalogs that one API process remembers having sent."""
WORKER_CATALOGS = 512
"""Catalogs that a worker keeps: enough for 16 API processes, so that an id sent alone is always known."""

MAX_TIMELINE = 256
"""Steps that a report lists."""
MAX_TOKEN_SOURCES = 2048
"""Output tokens whose source a report lists."""


class MessageError(ValueError):
    """A message that cannot be sent or read. The text says why."""


@dataclass(frozen=True)
class Open:
    """A request is about to be sent to the engine. `sent_at` is the sender's monotonic clock, in seconds."""

    spec: RequestSpec
    sent_at: float = field(default_factory=time.monotonic)


@dataclass(frozen=True)
class HintMessage:
    """A hint for the request of that id. `sent_at` is the sender's monotonic clock, in seconds."""

    id: str
    hint: Hint
    sent_at: float = field(default_factory=time.monotonic)


@dataclass(frozen=True)
class GuessesMessage:
    """Guesses made ahead for the request of that id. `sent_at` is the sender's monotonic clock, in seconds."""

    id: str
    guesses: LexicalGuesses
    sent_at: float = field(default_factory=time.monotonic)


@dataclass(frozen=True)
class Report:
    """What became of one request: `body` is what the client sees under the key "ooospec", `id` included."""

    id: str
    body: Mapping[str, Any]


Mail = Open | HintMessage | GuessesMessage
"""What a worker is sent."""


class CatalogStore:
    """The catalogs that were received, by id, least recently used first out."""

    def __init__(self, max_entries: int = WORKER_CATALOGS) -> None:
        """An empty store of at most `max_entries` catalogs."""
        self._catalogs: OrderedDict[str, Catalog] = OrderedDict()
        self._max_entries = max_entries

    def put(self, catalog: Catalog) -> None:
        """Keep a catalog."""
        self._catalogs[catalog.id] = catalog
        self._catalogs.move_to_end(catalog.id)
        while len(self._catalogs) > self._max_entries:
            self._catalogs.popitem(last=False)

    def get(self, catalog_id: str) -> Catalog | None:
        """The catalog of that id, or None."""
        catalog = self._catalogs.get(catalog_id)
        if catalog is not None:
            self._catalogs.move_to_end(catalog_id)
        return catalog


def encode_open(message: Open, *, with_catalog: bool) -> bytes:
    """The message as JSON; without the catalog only its id goes, and the worker must have it already.

    Raises:
        MessageError: It is larger than `MAX_MESSAGE_BYTES` or holds what JSON cannot carry.
    """
    apart = ("catalog", "guesses")
    spec = {item.name: getattr(message.spec, item.name) for item in fields(RequestSpec) if item.name not in apart}
    catalog = message.spec.catalog
    body: dict[str, Any] = {"kind": "open", "at": message.sent_at, "spec": spec, "catalog": catalog.id}
    if with_catalog:
        body["functions"] = [_function_to_json(function) for function in catalog.functions]
    return _dump(body)


def encode_hint(message: HintMessage) -> bytes:
    """The message as JSON.

    Raises:
        MessageError: It is larger than `MAX_MESSAGE_BYTES`.
    """
    hint = message.hint.model_dump(mode="json", exclude_defaults=True)
    return _dump({"kind": "hint", "at": message.sent_at, "id": message.id, "hint": hint})


def encode_guesses(message: GuessesMessage) -> bytes:
    """The message as JSON.

    Raises:
        MessageError: It is larger than `MAX_MESSAGE_BYTES` or holds what JSON cannot carry.
    """
    return _dump({"kind": "guesses", "at": message.sent_at, "id": message.id, "guesses": message.guesses.to_data()})


def encode_report(report: Report) -> bytes:
    """The report as JSON.

    Raises:
        MessageError: It is larger than `MAX_MESSAGE_BYTES` or holds what JSON cannot carry.
    """
    return _dump({"kind": "report", "id": report.id, "body": dict(report.body)})


def decode(data: bytes, catalogs: CatalogStore) -> Open | HintMessage | GuessesMessage | Report:
    """Read one message. A catalog that comes with it goes into `catalogs`, one that does not comes from it.

    A catalog that is neither sent nor known is read as an empty one: the request then has less to go on.

    Raises:
        MessageError: The bytes are no message of ours.
    """
    try:
        body = json.loads(data)
        kind = body["kind"]
        if kind == "open":
            return Open(_spec_from_json(body, catalogs), sent_at=float(body["at"]))
        if kind == "hint":
            hint = Hint.model_validate(body["hint"])
            return HintMessage(str(body["id"]), hint, sent_at=float(body["at"]))
        if kind == "guesses":
            guesses = LexicalGuesses.from_data(body["guesses"])
            return GuessesMessage(str(body["id"]), guesses, sent_at=float(body["at"]))
        if kind == "report":
            return Report(str(body["id"]), dict(body["body"]))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        msg = f"message of {len(data)} bytes cannot be read: {type(error).__name__}: {error}"
        raise MessageError(msg) from None
    msg = f"message of unknown kind {kind!r}"
    raise MessageError(msg)


def _dump(body: dict[str, Any]) -> bytes:
    try:
        data = json.dumps(body, separators=(",", ":")).encode("ascii")
    except (ValueError, TypeError, RecursionError) as error:
        msg = f"message {body['kind']!r} cannot be written as JSON: {error}"
        raise MessageError(msg) from None
    if len(data) > MAX_MESSAGE_BYTES:
        msg = f"message {body['kind']!r} of {len(data)} bytes refused: at most {MAX_MESSAGE_BYTES} are sent"
        raise MessageError(msg)
    return data


def _function_to_json(function: Function) -> dict[str, Any]:
    slots = [
        {item.name: getattr(slot, item.name) for item in fields(Slot) if item.name != "schema"}
        | {"schema": dict(slot.schema)}
        for slot in function.slots
    ]
    return {
        "name": function.name,
        "description": function.description,
        "slots": slots,
        "understood": function.understood,
    }


def _function_from_json(body: Mapping[str, Any]) -> Function:
    slots = tuple(
        Slot(**{**slot, "types": tuple(slot["types"]), "options": tuple(slot["options"])}) for slot in body["slots"]
    )
    return Function(**{**body, "slots": slots})


def _spec_from_json(body: Mapping[str, Any], catalogs: CatalogStore) -> RequestSpec:
    spec = RequestSpec(**body["spec"])
    if spec.method not in METHODS:
        msg = f"unknown method {spec.method!r}"
        raise ValueError(msg)
    catalog_id = str(body["catalog"])
    if "functions" in body:
        functions = tuple(_function_from_json(function) for function in body["functions"])
        catalog = Catalog(functions=functions, id=catalog_id)
        catalogs.put(catalog)
    else:
        catalog = catalogs.get(catalog_id) or Catalog()
    return replace(spec, catalog=catalog)

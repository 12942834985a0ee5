import json

import pytest

from ooospec_agents.catalog import Catalog, Function, Slot
from ooospec_agents.drafting.request import RequestSpec
from ooospec_agents.hint import Hint
from ooospec_agents.vllm_plugin.messages import (
    MAX_MESSAGE_BYTES,
    CatalogStore,
    HintMessage,
    MessageError,
    Open,
    Report,
    decode,
    encode_hint,
    encode_open,
    encode_report,
)

UNIT = Slot(
    name="unit",
    types=("string", "null"),
    description="°C or °F",
    required=True,
    options=("c", None),
    default="c",
    has_default=True,
    schema={"type": ["string", "null"], "enum": ["c", None]},
)
WEATHER = Catalog(functions=(Function("weather", "Look outside", (UNIT,)), Function("odd", understood=False)), id="w1")
SPEC = RequestSpec(
    id="r1",
    tenant="t",
    scope="s",
    method="lexical",
    wire_format="hermes",
    catalog=WEATHER,
    required=True,
    named="weather",
    conversation="user: caf\u00e9 \ud800",
    parallel=False,
    reply_to="ipc:///x/api",
)


def test_open_with_catalog_reads_back_equal() -> None:
    assert decode(encode_open(Open(SPEC, 2.5), with_catalog=True), CatalogStore()) == Open(SPEC, 2.5)


def test_known_catalog_is_found_by_its_id() -> None:
    store = CatalogStore()
    decode(encode_open(Open(SPEC), with_catalog=True), store)
    short = encode_open(Open(SPEC), with_catalog=False)
    message = decode(short, store)
    assert isinstance(message, Open)
    assert message.spec.catalog == WEATHER
    assert b"Look outside" not in short


def test_unknown_catalog_is_empty() -> None:
    message = decode(encode_open(Open(SPEC), with_catalog=False), CatalogStore())
    assert isinstance(message, Open)
    assert message.spec.catalog == Catalog()


def test_catalogs_used_least_recently_go_first() -> None:
    store = CatalogStore(2)
    for name in "ab":
        store.put(Catalog(id=name))
    store.get("a")
    store.put(Catalog(id="c"))
    assert [store.get(name) is not None for name in "abc"] == [True, False, True]


def test_hint_reads_back_equal() -> None:
    hint = Hint.of_call("weather", {"unit": None, "place": {"city": "Köln"}})
    assert decode(encode_hint(HintMessage("r1", hint, 1.0)), CatalogStore()) == HintMessage("r1", hint, 1.0)


def test_report_reads_back_equal() -> None:
    report = Report("r1", {"id": "r1", "steps": 3, "timeline": [[0.5, 1, 2, 1]]})
    assert decode(encode_report(report), CatalogStore()) == report


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"17",
        b"{}",
        b'{"kind":"open"}',
        b'{"kind":"open","at":0,"catalog":"","spec":{"id":"r","surprise":1}}',
        b'{"kind":"open","at":0,"catalog":"","spec":{"id":"r","method":"magic"}}',
        b'{"kind":"hint","at":0,"id":"r","hint":{"calls":[{"name":""}]}}',
        b'{"kind":"report","id":"r","body":3}',
        b'{"kind":"else"}',
        b"[" * 100_000,
    ],
)
def test_garbage_is_refused(data: bytes) -> None:
    with pytest.raises(MessageError):
        decode(data, CatalogStore())


def test_too_large_a_catalog_is_not_sent() -> None:
    big = Catalog(functions=(Function("f", "x" * MAX_MESSAGE_BYTES),), id="big")
    with pytest.raises(MessageError, match="at most 262144"):
        encode_open(Open(RequestSpec(id="r", catalog=big)), with_catalog=True)


def test_what_json_cannot_carry_is_refused() -> None:
    with pytest.raises(MessageError, match="cannot be written"):
        encode_report(Report("r", {"steps": object()}))


def test_messages_are_ascii_json() -> None:
    assert json.loads(encode_open(Open(SPEC), with_catalog=True).decode("ascii"))["kind"] == "open"

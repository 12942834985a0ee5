"""The set that comes with the package is what it claims to be."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import jsonschema

from ooospec_agents.bench.data import load_named
from ooospec_agents.bench.ledger import fingerprint
from ooospec_agents.bench.own import FOLDER, rows
from ooospec_agents.catalog import Catalog

ITEMS = load_named("own")
DOMAINS = sorted(file.stem for file in FOLDER.glob("*.jsonl"))
ROWS = [row for domain in DOMAINS for row in rows(domain)]


def test_it_is_as_large_and_as_varied_as_promised() -> None:
    assert len(ITEMS) == len({item.id for item in ITEMS}) == len({fingerprint(item) for item in ITEMS})
    assert len(ITEMS) >= 120
    assert len(DOMAINS) == 6
    assert len({call["name"] for item in ITEMS for call in item.gold}) >= 25
    languages = Counter(row["language"] for row in ROWS)
    assert set(languages) == {"en", "de", "fr", "es"}
    assert min(languages.values()) >= 20
    calls = Counter(min(len(item.gold), 2) for item in ITEMS)
    assert calls[0] >= 10  # no call
    assert calls[2] >= 15  # several at once
    assert sum(len(item.messages) > 1 for item in ITEMS) >= 10


def schemas(item: Any) -> dict[str, Any]:
    return {tool["function"]["name"]: tool["function"]["parameters"] for tool in item.tools}


def test_every_call_is_right_by_its_schema() -> None:
    nested = optional = 0
    for item in ITEMS:
        for call in item.gold:
            schema = schemas(item)[call["name"]]  # bound to the request
            jsonschema.validate(call["arguments"], {**schema, "additionalProperties": False})
            nested += any(isinstance(value, dict | list) for value in call["arguments"].values())
            optional += bool(set(call["arguments"]) - set(schema["required"]))
    assert nested >= 30
    assert optional >= 60


def test_tools_are_read_by_the_catalog() -> None:
    for item in ITEMS:
        assert len(Catalog.from_tools(item.tools).functions) == len(item.tools)


def test_conversations_are_whole() -> None:
    for item in ITEMS:
        roles = [message["role"] for message in item.messages]
        assert roles[-1] == "user"
        ids = [call["id"] for message in item.messages for call in message.get("tool_calls") or []]
        assert ids == [message["tool_call_id"] for message in item.messages if message["role"] == "tool"]
        for message in item.messages:
            for call in message.get("tool_calls") or []:
                json.loads(call["function"]["arguments"])


def test_dates_and_codes_of_an_answer_stand_in_its_conversation() -> None:
    for item in ITEMS:
        said = " ".join(str(message.get("content") or "") for message in item.messages)
        for call in item.gold:
            for key in ("order_id", "product_id", "code", "check_in", "version"):
                if key in call["arguments"]:
                    assert call["arguments"][key] in said, (item.id, key)

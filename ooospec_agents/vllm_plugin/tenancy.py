"""Whose request it is. Stamped here, behind vLLM's key check, and never taken from a request's body."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

MAX_CLIENT_ID_CHARS = 256
"""Characters of a client's own request id that count."""


TENANT_HEADER = "OOOSPEC_TENANT_HEADER"
"""Environment variable with the header that says whose request it is, where a gateway in front sets one."""


def tenant_of(headers: Iterable[tuple[bytes, bytes]], header: str = "") -> str:
    """The tenant behind a request: a hash of its API key, or "" without one.

    Args:
        headers: The request's headers as ASGI has them, names in lower case.
        header: A header that counts besides the key: one key, several tenants. It is to be set by the operator's
            gateway, which drops what clients send under its name.
    """
    headers = tuple(headers)
    by_key = _by_key(headers)
    named = b",".join(
        value for name, value in headers if header and name == header.lower().encode("latin-1", "replace")
    )
    if not named:
        return by_key
    return hashlib.sha256(b"ooospec named tenant\0" + by_key.encode() + b"\0" + named).hexdigest()[:32]


def _by_key(headers: Iterable[tuple[bytes, bytes]]) -> str:
    for name, value in headers:
        if name == b"authorization":
            scheme, _, key = value.partition(b" ")
            if scheme.lower() == b"bearer" and key.strip():
                return hashlib.sha256(b"ooospec tenant\0" + key.strip()).hexdigest()[:32]
    return ""


def internal_id(tenant: str, client_id: str) -> str:
    """The id under which the worker knows a client's own request id; another tenant's is another one."""
    text = f"ooospec id\0{tenant}\0{client_id[:MAX_CLIENT_ID_CHARS]}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]

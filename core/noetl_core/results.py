"""Results and references to them (rules H1–H3, K33).

A result is stored under the digest of its canonical JSON, so that storing it twice changes nothing
and whoever reads it can verify it. Used by the worker (task results, big `ctx` values) and by the
control plane (items and results of loops).
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TypeGuard

from noetl_core.values import Value

INLINE_MAX_BYTES = 64 * 1024
"""The largest result that travels in events, unless a spec says otherwise (rule H1)."""
CTX_MAX_BYTES = 1024 * 1024
"""The largest `ctx` as a whole (rule K25)."""
PREVIEW_CHARS = 200
"""How much of a stored text or of the start of its JSON a reference shows."""
STORE = "postgres"
JSON = "application/json"

Ref = dict[str, Value]
"""`{kind: result_ref, store, key, checksum, size, schema_hint, media_type, preview}`."""


def canonical(value: Value) -> bytes:
    """The one text of a value: what digests and sizes are taken of."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


def is_ref(value: Value) -> TypeGuard[Ref]:
    """A reference as the engine makes them: data that only resembles one is left alone."""
    if not isinstance(value, dict) or value.get("kind") != "result_ref":
        return False
    key = value.get("key")
    return isinstance(key, str) and value.get("checksum") == f"sha256:{key}"


def reference(
    content: bytes, value: Value = None, media_type: str = JSON, selected: Value = None
) -> Ref:
    """The reference to stored content; `value` is what it holds, where that is JSON."""
    checksum = hashlib.sha256(content).hexdigest()
    ref: Ref = {
        "kind": "result_ref",
        "store": STORE,
        "key": checksum,
        "checksum": f"sha256:{checksum}",
        "size": len(content),
        "schema_hint": schema_hint(value) if media_type == JSON else None,
        "media_type": media_type,
        "preview": content[: 4 * PREVIEW_CHARS].decode("utf-8", "replace")[:PREVIEW_CHARS],
    }
    return ref if selected is None else {**ref, "selected": selected}


def schema_hint(value: Value) -> Value:
    """The outer shape of a value: enough for a person to know what is behind a reference."""
    match value:
        case dict():
            return {"type": "object", "keys": [*sorted(value)[:20]]}
        case list():
            return {"type": "array", "length": len(value)}
        case str():
            return {"type": "string"}
        case bool():
            return {"type": "boolean"}
        case None:
            return {"type": "null"}
        case _:
            return {"type": "number"}


_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def select(value: Value, fields: dict[str, str]) -> dict[str, Value]:
    """The chosen fields of a result by dotted path; what is missing is null (rule K33)."""
    return {name: _at(value, path) for name, path in fields.items()}


def _at(value: Value, path: str) -> Value:
    for word, index in _STEP.findall(path.removeprefix("$").removeprefix(".")):
        if index and isinstance(value, list) and int(index) < len(value):
            value = value[int(index)]
        elif word and isinstance(value, dict) and word in value:
            value = value[word]
        else:
            return None
    return value

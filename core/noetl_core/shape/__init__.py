"""How a value of the language is written: small readers that are put together beside the model's
fields.

Each `Shape` says three things once: how to read a value from an author's file (with a place for
every problem), how to write it back in canonical form, and its JSON Schema. The model declares
its fields with `key(...)`; the loader, the digest, the editor schema and the CRDs all follow from
that.
"""

from noetl_core.shape.base import Schema, Shape
from noetl_core.shape.data import (
    Data,
    DataList,
    DataMap,
    Guard,
    ListOf,
    MapOf,
    Placeholder,
    Templated,
)
from noetl_core.shape.record import (
    Definitions,
    Key,
    Missing,
    Rec,
    Record,
    dump_record,
    key,
    read_keys,
    record,
    record_schema,
)
from noetl_core.shape.scalar import (
    KUBERNETES_NAME,
    NAME,
    Boolean,
    Choice,
    Integer,
    LooseText,
    Number,
    Text,
    check_least,
    name_text,
)

__all__ = [
    "KUBERNETES_NAME",
    "NAME",
    "Boolean",
    "Choice",
    "Data",
    "DataList",
    "DataMap",
    "Definitions",
    "Guard",
    "Integer",
    "Key",
    "ListOf",
    "LooseText",
    "MapOf",
    "Missing",
    "Number",
    "Placeholder",
    "Rec",
    "Record",
    "Schema",
    "Shape",
    "Templated",
    "Text",
    "check_least",
    "dump_record",
    "key",
    "name_text",
    "read_keys",
    "record",
    "record_schema",
]

"""Generated playbooks: valid ones with every feature of the language, and broken texts of them.

`documents()` gives canonical data in document form that loads without an error; `texts()` the
same as YAML; `broken()` a text after one to three mutations. Names are few on purpose, so that
references resolve.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache

import yaml
from hypothesis import strategies as st

Data = dict[str, object]

_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_STEPS = ("start", "fetch", "store_rows", "Branch-2", "_tail", "x")
_LABELS = ("first", "second", "third_task", "a-b")
_WORDS = st.sampled_from(
    ["", "plain", "with: colon", "äöü 漢字 🎈", " lead", "x\ny\n", "#no", "yes", "010"]
)
_TEMPLATES = st.sampled_from(
    [
        "{{ ctx.value }}",
        "{{ workload.items | default([]) }}",
        "a {{ args.n }} b",
        "{{ 1 + 2 }}",
        "{{ workload['key with blank'] }}",
    ]
)
_WORKER_TEMPLATES = st.sampled_from(
    ["{{ _prev }}", "{{ iter.index }}", "{{ _attempt }}", "{{ _prev.data | tojson }}"]
)
_GUARDS = st.sampled_from([True, False, "{{ ctx.go }}", "{{ workload.n > 3 and args.ok }}"])
_ARC_GUARDS = st.sampled_from(
    [True, "{{ event.name == 'step.done' }}", "{{ event.status == 'ok' }}"]
)
_RULE_GUARDS = st.sampled_from(
    [
        "{{ outcome.status == 'error' }}",
        "{{ outcome.error.retryable }}",
        "{{ outcome.result.more }}",
    ]
)
_SECONDS = st.one_of(st.integers(1, 100), st.floats(0.1, 60, allow_nan=False))

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False),
    _WORDS,
)
_KEYS = st.sampled_from(["a", "key", "on", "1", "a b", "input", "when", "ß", "n"])


@cache
def values(texts: st.SearchStrategy[str] = _WORDS) -> st.SearchStrategy[object]:
    """JSON data; its texts are templates where that is asked for."""
    return st.recursive(
        st.one_of(scalars, texts),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(_KEYS, inner, max_size=3)
        ),
        max_leaves=6,
    )


_SOME_LABELS = st.lists(st.sampled_from(_LABELS), min_size=1, max_size=2, unique=True).map(tuple)
_SOME_STEPS = st.lists(st.sampled_from(_STEPS), min_size=1, max_size=3, unique=True).map(tuple)
_MASKS = [st.integers(0, 2**bits - 1) for bits in range(9)]


def _with(draw: st.DrawFn, made: Data, **optional: st.SearchStrategy[object]) -> Data:
    """A mapping with some of the optional keys; a name with `_` at its end stands without it."""
    mask = draw(_MASKS[len(optional)])
    for bit, (name, strategy) in enumerate(optional.items()):
        if mask >> bit & 1:
            made[name.rstrip("_")] = draw(strategy)
    return made


@cache
@st.composite
def thens(draw: st.DrawFn, labels: tuple[str, ...]) -> Data:
    do = draw(
        st.sampled_from(["continue", "retry", "break", "fail", *(["jump"] if labels else [])])
    )
    made: Data = {"do": do}
    if do == "jump":
        made["to"] = draw(st.sampled_from(labels))
    if do == "retry":
        _with(
            draw,
            made,
            attempts=st.integers(2, 9),
            backoff=st.sampled_from(["none", "linear", "exponential"]),
            delay=st.one_of(_SECONDS, st.just("{{ outcome.error.retry_after | default(1) }}")),
            max_delay=_SECONDS,
        )
    if do == "fail":
        _with(draw, made, message=st.just("failed: {{ outcome.error.message }}"))
    patch = st.dictionaries(_KEYS, values(st.just("{{ outcome.result }}")), max_size=2)
    return _with(draw, made, set_iter=patch, set_ctx=patch)


@cache
@st.composite
def policies(draw: st.DrawFn, labels: tuple[str, ...]) -> Data:
    rules: list[object] = [
        {"when": draw(_RULE_GUARDS), "then": draw(thens(labels))}
        for _ in range(draw(st.integers(0, 2)))
    ]
    if draw(st.booleans()) or not rules:
        rules.append({"else": {"then": draw(thens(labels))}})
    return _with(draw, {"rules": rules}, on_unmatched=st.sampled_from(["continue", "fail"]))


@cache
def _task_specs(labels: tuple[str, ...]) -> st.SearchStrategy[object]:
    return st.fixed_dictionaries(
        {},
        optional={
            "policy": policies(labels),
            "timeout": st.one_of(_SECONDS, st.just({"connect": 1, "read": 2.5})),
            "retry_statuses": st.lists(st.integers(400, 599), max_size=2),
            "result": st.just({"inline_max_bytes": 100, "select": {"id": "$.data[0].id"}}),
        },
    )


@cache
def _texts() -> st.SearchStrategy[str]:
    return st.one_of(_TEMPLATES, _WORKER_TEMPLATES)


@cache
@st.composite
def tool_keys(draw: st.DrawFn, workbook: bool) -> Data:
    """A kind and what it takes."""
    kinds = ["http", "postgres", "duckdb", "python", "noop", "playbook", "secrets"]
    kind = draw(st.sampled_from([*kinds, *(["workbook"] if workbook else [])]))
    data = st.dictionaries(_KEYS, values(_texts()), max_size=2)
    sql = st.sampled_from(
        [
            "SELECT 1",
            "SELECT {{ ctx.id }}, '{{ _prev | tojson }}'::jsonb; -- {{ none }}\nDELETE FROM t",
            'INSERT INTO {{ workload.table | ident }} VALUES (:a, "x")',
        ]
    )
    match kind:
        case "http":
            made: Data = {"kind": kind, "url": draw(st.one_of(_TEMPLATES, st.just("http://a")))}
            return _with(
                draw, made, method=st.just("POST"), json=data, headers=data, auth=st.just("web")
            )
        case "postgres":
            made = {
                "kind": kind,
                "auth": "pg_main",
                "command": draw(st.one_of(sql, st.lists(sql, min_size=1))),
            }
            return _with(draw, made, params=data, fetch=st.sampled_from(["all", "one", "none"]))
        case "duckdb":
            return _with(draw, {"kind": kind, "command": draw(sql)}, attach=st.just("pg_main"))
        case "python":
            return _with(draw, {"kind": kind, "code": "result = '{{ not a template'\n"}, args=data)
        case "playbook":
            return _with(
                draw, {"kind": kind, "playbook": "other/one"}, workload=data, wait=st.booleans()
            )
        case "secrets":
            return {"kind": kind, "auth": "web"}
        case "workbook":
            return {"kind": kind, "task": "shared"}
        case _:
            return _with(draw, {"kind": kind}, result=values(_texts()))


@cache
@st.composite
def pipelines(draw: st.DrawFn, workbook: bool) -> list[object]:
    labels = draw(_SOME_LABELS)
    tasks: list[object] = []
    for label in labels:
        task = {"name": label, **draw(tool_keys(workbook))}
        tasks.append(_with(draw, task, spec=_task_specs(labels)))
    return tasks


@cache
@st.composite
def loops(draw: st.DrawFn, depth: int = 0) -> Data:
    inside: st.SearchStrategy[object] = st.one_of(
        st.just("{{ workload.items }}"), st.lists(values(_TEMPLATES), max_size=3)
    )
    if depth:
        inside = st.one_of(inside, st.just("{{ iter.item0 }}"))
    policy = st.fixed_dictionaries(
        {},
        optional={
            "exec": st.sampled_from(["local", "distributed"]),
            "reducers": st.dictionaries(
                _KEYS, st.sampled_from(["append", "sum", "last"]), max_size=2
            ),
        },
    )
    spec = st.fixed_dictionaries(
        {},
        optional={
            "mode": st.sampled_from(["sequential", "parallel"]),
            "max_in_flight": st.one_of(st.integers(1, 50), st.just("{{ workload.width }}")),
            "policy": policy,
        },
    )
    made = _with(draw, {"in": draw(inside), "iterator": f"item{depth}"}, spec=spec)
    return _with(draw, made, loop=loops(depth + 1)) if depth < 2 else made


@cache
def _admissions() -> st.SearchStrategy[object]:
    rule = st.builds(
        lambda when, allow: {"when": when, "then": {"allow": allow}}, _GUARDS, st.booleans()
    )
    last = st.sampled_from([[], [{"else": {"then": {"allow": True}}}]])
    rules = st.builds(lambda some, end: [*some, *end], st.lists(rule, max_size=2), last)
    return st.fixed_dictionaries(
        {"rules": rules}, optional={"on_deny": st.just("wait"), "deadline_s": _SECONDS}
    )


@cache
def _step_specs() -> st.SearchStrategy[object]:
    lifecycle = st.fixed_dictionaries(
        {},
        optional={
            "timeout_s": _SECONDS,
            "deadline_s": _SECONDS,
            "max_redeliveries": st.integers(0, 5),
        },
    )
    policy = st.fixed_dictionaries(
        {},
        optional={
            "admit": _admissions(),
            "lifecycle": lifecycle,
            "failure": st.just({"mode": "best_effort"}),
        },
    )
    joins = st.sampled_from(["all", {"mode": "all", "at_end": "fire"}, {"at_end": "drop"}])
    return st.fixed_dictionaries(
        {}, optional={"policy": policy, "join": joins, "executor": st.just({"kind": "pod"})}
    )


@cache
@st.composite
def steps(draw: st.DrawFn, name: str, others: tuple[str, ...], workbook: bool) -> Data:
    arc = st.fixed_dictionaries(
        {"step": st.sampled_from(others)},
        optional={
            "when": _ARC_GUARDS,
            "args": st.dictionaries(_KEYS, values(_TEMPLATES), max_size=2),
        },
    )
    router = st.fixed_dictionaries(
        {"arcs": st.lists(arc, max_size=3)},
        optional={
            "spec": st.fixed_dictionaries({"mode": st.sampled_from(["exclusive", "inclusive"])})
        },
    )
    made: Data = {"step": name, "tool": draw(pipelines(workbook))}
    return _with(draw, made, desc=_WORDS, spec=_step_specs(), loop=loops(), next=router)


@st.composite
def documents(draw: st.DrawFn) -> Data:
    """A valid playbook as canonical data, in document form."""
    names = draw(_SOME_STEPS)
    workbook = draw(st.booleans())
    made: Data = {
        "metadata": _with(
            draw,
            {"name": draw(st.sampled_from(["etl", "My Playbook", "a.b-c", "x_y"]))},
            path=st.just("team/etl"),
            version=st.sampled_from(["1.10", "v2"]),
            description=_WORDS,
            labels=st.just({"team": "data", "n": "1"}),
        ),
        "keychain": [
            {"name": "pg_main", "kind": "postgres_credential"},
            {
                "name": "web",
                "kind": "bearer",
                "secretRef": {"name": "web-token"},
                "map": {"token": "t"},
            },
        ],
        "workflow": [draw(steps(name, names, workbook)) for name in names],
    }
    if workbook:
        made["workbook"] = {"shared": {"kind": "noop", "result": {"a": "{{ ctx.a | default(1) }}"}}}
    limits = st.just({"max_step_runs": 100})
    spec = st.fixed_dictionaries(
        {},
        optional={
            "entry_step": st.sampled_from(names),
            "result": values(_TEMPLATES),
            "policy": st.fixed_dictionaries({}, optional={"limits": limits}),
            "pool": st.just({"min": 1, "max": 3}),
        },
    )
    executor = st.fixed_dictionaries(
        {}, optional={"kind": st.sampled_from(["pool", "job"]), "spec": spec}
    )
    return _with(
        draw, made, workload=st.dictionaries(_KEYS, values(), max_size=3), executor=executor
    )


def written(data: object, *, flow: bool | None = False, sort: bool = False, width: int = 80) -> str:
    """Data as YAML."""
    return str(
        yaml.dump(
            data,
            Dumper=_DUMPER,
            sort_keys=sort,
            allow_unicode=True,
            default_flow_style=flow,
            width=width,
        )
    )


def texts() -> st.SearchStrategy[str]:
    """A valid playbook as the text of a file."""
    return st.builds(
        lambda data, flow, sort: written(data, flow=flow, sort=sort),
        documents(),
        st.sampled_from([False, None, True]),
        st.booleans(),
    )


def reordered(data: object, chance: random.Random) -> object:
    """The same data with the keys of every mapping in another order."""
    if isinstance(data, dict):
        entries = [(key, reordered(value, chance)) for key, value in data.items()]
        chance.shuffle(entries)
        return dict(entries)
    return [reordered(item, chance) for item in data] if isinstance(data, list) else data


_SPLICES = (
    "{{",
    "}}",
    "{%",
    "'",
    '"',
    "\t",
    "&a ",
    "*a",
    "<<: ",
    "!x ",
    "- ",
    ": ",
    "#",
    "---\n",
    "\n",
    "\x00",
    "{",
    "[",
    "|",
    "|-\n",
    "yes",
    "010",
    "1e999",
    "😀",
    "\ufeff",
    "\r",
    "?",
    "%",
    "null",
    "when: x\n",
)
_STRANGE = (None, True, 0, -1, 1.5, "", "text", "{{ x", [], {}, [None], {"a": None}, [[]], {"": 1})


def _paths(data: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    found = [path] if path else []
    entries = (
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, list)
        else ()
    )
    for key, value in entries:
        found += _paths(value, (*path, key))
    return found


def _tree_mutation(data: object, chance: random.Random) -> object:
    """One value of the tree deleted, renamed, doubled or changed in type."""
    paths = _paths(data)
    if not paths:
        return data
    *outer, key = chance.choice(paths)
    holder = data
    for one in outer:
        holder = holder[one]  # type: ignore[index]  # a path of this tree
    changes: list[Callable[[], object]] = [
        lambda: holder.__delitem__(key),  # type: ignore[attr-defined]
        lambda: holder.__setitem__(key, chance.choice(_STRANGE)),  # type: ignore[attr-defined]
    ]
    if isinstance(holder, dict):
        near = str(key)[:-1] + "z"
        words = ("vars", "when", "case", "retry", "input", "set", "do", "eval", "on", near)
        changes.append(lambda: holder.__setitem__(chance.choice(words), holder.pop(key)))
    elif isinstance(holder, list) and isinstance(key, int):
        changes.append(lambda: holder.append(holder[key]))
    chance.choice(changes)()
    return data


def _text_mutation(text: str, chance: random.Random) -> str:
    at = chance.randrange(len(text) + 1)
    end = min(len(text), at + chance.choice((1, 5, 40)))
    match chance.randrange(5):
        case 0:
            return text[:at] + chance.choice(_SPLICES) + text[at:]
        case 1:
            return text[:at] + text[end:]
        case 2:
            return text[:at]
        case 3:
            return text[:at] + text[at:end] * 2 + text[end:]
        case _:
            lines = text.splitlines(keepends=True)
            chance.shuffle(lines) if chance.random() < 0.1 else lines.insert(
                0, chance.choice(lines or [""])
            )
            return "".join(lines)


@st.composite
def broken(draw: st.DrawFn) -> bytes:
    """The bytes of a valid file after some mutations; now and then it is still valid."""
    chance = random.Random(draw(st.integers(0, 2**32)))
    data: object = yaml.load(written(draw(documents())), _LOADER)
    for _ in range(draw(st.integers(0, 3))):
        data = _tree_mutation(data, chance)
    try:
        text = written(data, flow=draw(st.sampled_from([False, True])))
    except RecursionError:
        text = ""
    for _ in range(draw(st.integers(0, 3))):
        text = _text_mutation(text, chance)
    raw = text.encode("utf-8", "surrogatepass")
    if draw(st.integers(0, 9)) == 0:
        at = chance.randrange(len(raw) + 1)
        raw = raw[:at] + chance.randbytes(3) + raw[at + 1 :]
    return raw

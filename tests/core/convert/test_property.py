"""Any way to write a playbook goes to the other form and back: equal, and no comment lost."""

from __future__ import annotations

import json
from collections import Counter

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from noetl_core.convert import convert_text
from noetl_core.convert.lines import comments_of
from noetl_core.load import Form, digest, load

ANY = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
WORDS = st.text("abcXYZ019 _-#:'\"{}[]|>&*!%é日", max_size=12)


class Writer:
    """Writes a value as YAML in a way that the drawn choices decide."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.step = draw(st.integers(1, 4))
        self.comments = 0

    def maybe(self, outof: int = 4) -> bool:
        return self.draw(st.integers(1, outof)) == 1

    def noise(self, indent: int) -> list[str]:
        """Comments and blank lines that may stand above a key."""
        lines: list[str] = []
        while self.maybe(6) and len(lines) < 3:
            if self.maybe(2):
                lines.append("")
            else:
                self.comments += 1
                deeper = self.draw(st.integers(0, 2)) * self.step
                lines.append(" " * (indent + deeper) + f"# note {self.comments}")
        return lines

    def behind(self) -> str:
        if not self.maybe(8):
            return ""
        self.comments += 1
        return f"  # behind {self.comments}"

    def scalar(self, value: object, indent: int) -> list[str]:
        """A scalar's text: the rest of its key's line, then further lines."""
        if isinstance(value, str):
            return self.text(value, indent)
        return [json.dumps(value) + self.behind()]

    def text(self, value: str, indent: int) -> list[str]:
        style = self.draw(st.sampled_from(["double", "single", "literal", "over"]))
        if (
            style == "literal"
            and value.strip()
            and value == value.strip()
            and not value.startswith("#")
        ):
            body = " " * (indent + self.step)
            keep = self.draw(st.sampled_from(["", "-", "+"]))
            return [f"|{keep}", f"{body}{value}", f"{body}# inside", "", f"{body}{value}"]
        if style == "over" and value.isalnum():
            return [
                f'"{value}',
                "",
                f'{" " * (indent + self.step)}{value} # no comment"' + self.behind(),
            ]
        if style == "single":
            return ["'" + value.replace("'", "''") + "'" + self.behind()]
        return [json.dumps(value, ensure_ascii=False) + self.behind()]

    def mapping(self, value: dict[str, object], indent: int) -> list[str]:
        lines: list[str] = []
        for key, item in value.items():
            lines += self.noise(indent)
            head = " " * indent + key + ":"
            if isinstance(item, (dict, list)):
                if not item or self.maybe(5):
                    lines.append(f"{head} {json.dumps(item, ensure_ascii=False)}{self.behind()}")
                    continue
                lines.append(head + self.behind())
                lines += self.nested(item, indent)
            elif key in ("name", "step", "kind", "apiVersion"):
                lines.append(f"{head} {json.dumps(item, ensure_ascii=False)}{self.behind()}")
            else:
                first, *more = self.scalar(item, indent)
                lines += [f"{head} {first}", *more]
        return lines

    def nested(self, value: object, indent: int) -> list[str]:
        if isinstance(value, dict):
            return self.mapping(value, indent + self.step)
        assert isinstance(value, list)
        at = indent + (self.step if self.maybe(2) else 0)
        lines: list[str] = []
        for item in value:
            lines += self.noise(at)
            if isinstance(item, dict) and item:
                inner = self.mapping(item, at + 2)
                first = next(
                    i for i, line in enumerate(inner) if line.strip() and line.lstrip()[0] != "#"
                )
                lines += inner[:first]
                lines.append(" " * at + "- " + inner[first][at + 2 :])
                lines += inner[first + 1 :]
            else:
                lines.append(" " * at + "- " + json.dumps(item, ensure_ascii=False))
        return lines


DATA = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | WORDS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3)
    ),
    max_leaves=8,
)


@st.composite
def playbooks(draw: st.DrawFn) -> str:
    """The text of a valid document."""
    metadata: dict[str, object] = {
        "name": draw(st.sampled_from(["simple", "a.b-c", "With Blanks", "ünï/code", "007", "yes"])),
        "path": "a/b",
        "version": draw(st.sampled_from(["1", 2, 1.5])),
        "description": draw(WORDS.filter(str.strip)),
        "labels": {"k": "v"},
        "annotations": {"x": "y"},
    }
    kept = draw(st.permutations([k for k in metadata if k == "name" or draw(st.booleans())]))
    tool = {"kind": "python", "code": draw(WORDS.filter(str.strip)), "args": {"v": 1}}
    steps = [
        {"step": f"s{i}", "desc": "d", "tool": [dict(tool)]} for i in range(draw(st.integers(1, 3)))
    ]
    sections: dict[str, object] = {
        "metadata": {key: metadata[key] for key in kept},
        "executor": {"kind": "pool"},
        "workload": draw(st.dictionaries(st.sampled_from("abcdef"), DATA, max_size=4)),
        "workflow": steps,
        "apiVersion": "noetl.io/v2",
    }
    order = [k for k in sections if k in ("metadata", "workflow") or draw(st.booleans())]
    writer = Writer(draw)
    lines = writer.mapping({key: sections[key] for key in draw(st.permutations(order))}, 0)
    newline = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    text = newline.join([*lines, *writer.noise(0)]) + draw(
        st.sampled_from([newline, "", newline * 2])
    )
    return draw(st.sampled_from(["", f"---{newline}"])) + text


def comments(text: str) -> Counter[str]:
    root = load(text)[0].root
    assert root is not None
    return Counter(comments_of(text, root))


@ANY
@given(playbooks())
def test_A1_a_document_goes_there_and_back_without_a_loss(text: str) -> None:
    before = load(text)[0]
    # Braces in a text may be a wrong template: not what is looked at here.
    assume(before.playbook is not None)
    there = convert_text(text, Form.RESOURCE)
    back = convert_text(there.text, Form.DOCUMENT)
    for made, form in ((there, Form.RESOURCE), (back, Form.DOCUMENT)):
        again = load(made.text)[0]
        assert again.form is form
        assert again.playbook == before.playbook
        assert again.playbook is not None
        assert digest(again.playbook) == digest(before.playbook)
        assert not comments(text) - comments(made.text)
    # A block scalar whose end is the file's, or that keeps blank lines, may not change its place.
    if text.endswith("\n") and "|+" not in text:
        assert there.notes == ()
        assert back.notes == ()


@ANY
@given(playbooks())
def test_A1_a_resource_comes_back_as_it_was(text: str) -> None:
    assume(load(text)[0].playbook is not None)
    resource = convert_text(text, Form.RESOURCE).text
    document = convert_text(resource, Form.DOCUMENT).text
    again = convert_text(document, Form.RESOURCE)
    assert load(again.text)[0].playbook == load(resource)[0].playbook
    assert not comments(resource) - comments(again.text)

"""The examples of the language's source documents, each made a whole playbook around what it
shows."""

from __future__ import annotations

import re
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "seeds" / "examples"

_HEAD = """\
metadata:
  name: example
workload:
  api_url: http://localhost
  items: []
  endpoints: []
"""
_KEYCHAIN = "keychain:\n  - {name: pg_k8s, kind: postgres_credential}\n"
_STEP = "- step: example\n"


def example(source: str, name: str) -> str:
    """The text of one example, as its document has it."""
    return (EXAMPLES / source / f"{name}.yaml").read_text()


def names(source: str) -> list[str]:
    return sorted(path.stem for path in (EXAMPLES / source).glob("*.yaml"))


def playbook_around(fragment: str) -> str:
    """The smallest playbook that holds a fragment at its place."""
    first = fragment.lstrip().split(":", 1)[0]
    if first == "keychain":
        return f"{_HEAD}{fragment}workflow:\n{_STEP}  tool: {{kind: noop}}\n"
    if first == "- step":
        steps = fragment
    elif first.startswith("- "):
        steps = f"{_STEP}  tool:\n{_indented(fragment, 4)}"
    elif first == "tool":
        steps = _STEP + _indented(fragment, 2)
    else:
        steps = f"{_STEP}{_indented(fragment, 2)}  tool: {{kind: noop}}\n"
    return f"{_HEAD}{_KEYCHAIN}workflow:\n{steps}{_targets(steps)}"


def _indented(text: str, by: int) -> str:
    return "".join(" " * by + line if line.strip() else line for line in text.splitlines(True))


def _targets(steps: str) -> str:
    """Steps that do nothing, for the arcs that lead out of an example."""
    made = set(re.findall(r"^- step: (\w+)", steps, re.MULTILINE))
    wanted = dict.fromkeys(re.findall(r"^ +- step: (\w+)", steps, re.MULTILINE))
    return "".join(
        f"- step: {name}\n  tool: {{kind: noop}}\n" for name in wanted if name not in made
    )

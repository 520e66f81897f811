"""What a person can do next about an execution that waits at a gate."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from noetl_cli.local.data import DataFolder
from noetl_cli.terminal import printable

if TYPE_CHECKING:
    from noetl_core.engine.program import Program
    from noetl_core.engine.state import State

_CTX = re.compile(r"\bctx\.([A-Za-z_]\w*)")


def approval(program: Program, state: State, data: DataFolder) -> list[str]:
    """How each gate is opened from another terminal."""
    found: list[str] = []
    for step in dict.fromkeys(token.step for token in state.waiting.values()):
        keys = _keys(program, step)
        settings = " ".join(f"--set {key}=true" for key in keys) or "--set key=value"
        command = f"noetl approve {state.execution_id} --local{data.option} {settings}"
        found.append(f"{printable(step)} waits at its gate; to open it:  {command}")
    return found


def _keys(program: Program, step: str) -> list[str]:
    """The `ctx` keys that the guards of a gate read."""
    plan = program.steps.get(step)
    admit = plan.step.spec.policy.admit if plan else None
    texts = [str(rule.when) for rule in admit.rules if rule.when is not None] if admit else []
    return list(dict.fromkeys(key for text in texts for key in _CTX.findall(text)))

"""The beginning of the end: something decides how the execution ends, and the rest is cut off.

Called from wherever that may happen; `finishing` does what is left once nothing runs any more.
"""

from __future__ import annotations

from noetl_core.engine import ids
from noetl_core.engine.cancelling import cancel_all
from noetl_core.engine.draft import Draft
from noetl_core.engine.events import ExecutionEnding
from noetl_core.engine.state import Phase, Reason
from noetl_core.engine.triggers import Revoke
from noetl_core.templates import TemplateError


def end(draft: Draft, phase: Phase, reason: Reason, message: str) -> None:
    """From here no new token is made, and what runs is cancelled (rule C7)."""
    if draft.state.ending is not None:
        return
    if draft.state.keychain is not None:
        draft.effect(Revoke(ids.keychain_run(draft.program.execution_id)))
    draft.emit(ExecutionEnding(phase=phase.value, reason=reason.value, message=message), "ending")
    cancel_all(draft, message)


def fail(draft: Draft, reason: Reason, message: str) -> None:
    end(draft, Phase.FAILED, reason, message)


def fail_template(draft: Draft, place: str, error: TemplateError) -> None:
    """A template of admission or of an arc cannot be evaluated (rule K8)."""
    fail(draft, Reason.TEMPLATE_ERROR, f"{place}: {error}")

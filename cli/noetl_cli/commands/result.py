"""`noetl result`: the value itself, also of a stored result (rule K43)."""

from __future__ import annotations

import base64
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from noetl_cli import output
from noetl_cli.errors import CliError, Exit, UsageError
from noetl_cli.group import NoetlCommand
from noetl_cli.local import options

if TYPE_CHECKING:
    from noetl_cli.local.data import DataFolder
    from noetl_core.values import Value
    from noetl_operator.store.reading import Reading

app = typer.Typer(add_completion=False, rich_markup_mode=None)

EXAMPLES = """
noetl result latest --local
noetl result latest --local --step fetch -o json
"""


@dataclass(frozen=True, slots=True)
class Content:
    """A stored result that is no JSON."""

    media_type: str
    data: bytes


@app.command(cls=NoetlCommand, epilog=EXAMPLES)
def result(
    ctx: typer.Context,
    execution: options.Execution,
    step: options.Step = None,
    local: options.Local = False,
    data: options.Data = None,
) -> int:
    """Print the result of an execution, or of the last run of one of its steps."""
    from noetl_cli.local import opening
    from noetl_cli.local.data import DataFolder
    from noetl_cli.local.documents import value_text

    options.require_local(local, "result")
    out = output.current(ctx)
    value = opening.run(_read(DataFolder(data), execution, step))
    if not isinstance(value, Content):
        if out.is_json:
            out.document(value)
        else:
            out.line(value_text(value))
    elif out.is_json:
        encoded = base64.b64encode(value.data).decode()
        out.document({"media_type": value.media_type, "base64": encoded})
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(value.data)
        sys.stdout.buffer.flush()
    return Exit.OK


async def _read(data: DataFolder, execution: str, step: str | None) -> Value | Content:
    from noetl_cli.local import finding

    async with finding.found(data, execution) as (reading, execution_id):
        if step is not None:
            return await _full(reading, await _of_step(reading, execution_id, step))
        head = await reading.head(execution_id)
        if not head.state.phase.is_final:
            raise UsageError(
                f"the execution has no result yet: it is {head.state.phase.value}",
                "`noetl watch` follows it; --step prints the result of a step",
            )
        return await _full(reading, head.state.result)


async def _of_step(reading: Reading, execution_id: str, step: str) -> Value:
    from noetl_core.engine.events import LoopDone, StepDone, StepFailed
    from noetl_core.load import load_data
    from noetl_core.problems import nearest

    event = await reading.step_end(execution_id, step)
    if event is None:
        snapshot = await reading.store.load(execution_id)
        playbook = load_data(snapshot.request.document).playbook if snapshot else None
        known = [one.step for one in playbook.workflow] if playbook else []
        if step in known:
            raise UsageError(f"the step `{step}` has not ended")
        close = nearest(step, known)
        hint = f"did you mean `{close}`?" if close else None
        raise UsageError(f"the playbook has no step `{step}`", hint)
    fact = event.fact
    if isinstance(fact, StepFailed):
        from noetl_cli.local.progress import text_of

        raise CliError(f"the step `{step}` failed: {text_of(fact.error)}")
    assert isinstance(fact, StepDone | LoopDone)
    return fact.result


async def _full(reading: Reading, value: Value) -> Value | Content:
    """A value with stored parts in place of the references to them."""
    from noetl_core.results import JSON, is_ref

    if is_ref(value) and value.get("media_type") != JSON:
        content = await _content(reading, value)
        return Content(str(value.get("media_type")), content)
    return await _filled(reading, value)


async def _filled(reading: Reading, value: Value) -> Value:
    import json

    from noetl_core.results import JSON, is_ref

    if is_ref(value):
        if value.get("media_type") != JSON:
            return value
        stored: Value = json.loads(await _content(reading, value))
        return await _filled(reading, stored)
    if isinstance(value, dict):
        return {key: await _filled(reading, one) for key, one in value.items()}
    if isinstance(value, list):
        return [await _filled(reading, one) for one in value]
    return value


async def _content(reading: Reading, ref: dict[str, Value]) -> bytes:
    from noetl_operator.store.port import Corrupt

    try:
        content = await reading.store.get_result(str(ref["key"]))
    except Corrupt as error:
        raise CliError(str(error)) from None
    if content is None:
        raise CliError(f"the stored result {str(ref['key'])[:12]} is gone")
    return content

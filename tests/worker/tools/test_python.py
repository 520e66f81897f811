"""Rules I3, K36, K44: `python` runs in a child of its own, with limits, and ends when told to."""

import asyncio
import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from noetl_core.outcomes import ErrorKind, Outcome
from noetl_worker.tools.base import MIB
from tests.support.tools import Bench


def failure(outcome: Outcome) -> tuple[ErrorKind, str | None]:
    assert outcome.error is not None, outcome.result
    return outcome.error.kind, outcome.error.code


async def test_I3_args_are_globals_and_result_is_the_result(bench: Bench) -> None:
    outcome = await bench.run("python", code="result = {'sum': a + b}", args={"a": 1, "b": 2})
    assert outcome.error is None
    assert outcome.result == {"sum": 3}


async def test_K36_no_result_is_null(bench: Bench) -> None:
    assert (await bench.run("python", code="x = 1")).result is None
    assert (await bench.run("python", code="")).error is None


async def test_K36_some_types_become_text(bench: Bench) -> None:
    code = """
import datetime, decimal, uuid, enum
class Colour(str, enum.Enum):
    RED = "red"
class Level(enum.IntEnum):
    HIGH = 3
result = [datetime.datetime(2026, 1, 2, 3, 4, 5), datetime.date(2026, 1, 2), uuid.UUID(int=1),
          decimal.Decimal("1.50"), (1, 2.5), Colour.RED, Level.HIGH, True, None, "é"]
"""
    outcome = await bench.run("python", code=code)
    assert outcome.error is None
    assert outcome.result == [
        "2026-01-02T03:04:05",
        "2026-01-02",
        "00000000-0000-0000-0000-000000000001",
        "1.50",
        [1, 2.5],
        "red",
        3,
        True,
        None,
        "é",
    ]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("result = {'a': [1, {2}]}", "result.a[1] is of type set"),
        ("result = b'x'", "result is of type bytes"),
        ("result = {'a': {1: 2}}", "result.a has a key 1 of type int"),
        ("result = [float('nan')]", "result[0] is nan"),
        ("result = {'x': float('-inf')}", "result.x is -inf"),
        ("class Own: pass\nresult = [Own()]", "result[0] is of type Own"),
        ("import pathlib\nresult = pathlib.Path('x')", "result is of type pathlib.PosixPath"),
        ("result = []\nresult.append(result)", "nested too deeply"),
        ("import datetime\nresult = datetime.timedelta(1)", "type datetime.timedelta"),
    ],
)
async def test_K36_what_is_not_JSON_is_named_by_path_and_type(
    bench: Bench, code: str, said: str
) -> None:
    outcome = await bench.run("python", code=code)
    assert failure(outcome) == (ErrorKind.SCHEMA, "RESULT_NOT_JSON")
    assert outcome.error is not None
    assert said in outcome.error.message


@pytest.mark.parametrize(
    ("code", "kind", "name"),
    [
        ("int('x')", ErrorKind.SCHEMA, "ValueError"),
        ("{}['x']", ErrorKind.SCHEMA, "KeyError"),
        ("[][1]", ErrorKind.SCHEMA, "IndexError"),
        ("1 + 'x'", ErrorKind.SCHEMA, "TypeError"),
        ("import json; json.loads('{')", ErrorKind.SCHEMA, "JSONDecodeError"),
        ("1 / 0", ErrorKind.UNKNOWN, "ZeroDivisionError"),
        ("raise RuntimeError('no')", ErrorKind.UNKNOWN, "RuntimeError"),
        ("missing", ErrorKind.UNKNOWN, "NameError"),
        ("open('/nowhere/x')", ErrorKind.UNKNOWN, "FileNotFoundError"),
        ("def f(): f()\nf()", ErrorKind.UNKNOWN, "RecursionError"),
        ("def broken(:\n  pass", ErrorKind.SCHEMA, "SyntaxError"),
        ("if True:\npass", ErrorKind.SCHEMA, "IndentationError"),
    ],
)
async def test_K36_exceptions_by_table(bench: Bench, code: str, kind: ErrorKind, name: str) -> None:
    outcome = await bench.run("python", code=code)
    assert failure(outcome) == (kind, f"PY_{name}")
    assert outcome.error is not None
    assert outcome.error.exception_type == name
    assert outcome.error.source == "python"
    assert outcome.helpers == {"py": {"exception_type": name}}


async def test_K36_a_traceback_shows_the_lines_of_the_author(bench: Bench) -> None:
    code = "def inner(x):\n    return 1 / x\n\ninner(0)\n"
    outcome = await bench.run("python", code=code)
    assert outcome.error is not None
    assert outcome.error.message.startswith("ZeroDivisionError: division by zero (line 2)\n")
    assert 'File "<work>", line 4, in <module>' in outcome.error.message
    assert "    return 1 / x" in outcome.error.message
    assert "python_server" not in outcome.error.message
    assert "line 2, in inner" in bench.log.text("stderr")


async def test_K44_a_syntax_error_names_its_line(bench: Bench) -> None:
    outcome = await bench.run("python", code="x = 1\ny = = 2\n")
    assert outcome.error is not None
    assert "(line 2)" in outcome.error.message
    assert "y = = 2" in outcome.error.message


@pytest.mark.parametrize(
    ("code", "number"),
    [
        ("import sys; sys.exit(3)", 3),
        ("import sys; sys.exit()", 0),
        ("import sys; sys.exit('bye')", 1),
        ("import os; os._exit(7)", 7),
        ("raise SystemExit(300)", 44),
    ],
)
async def test_K44_a_child_that_ends_itself(bench: Bench, code: str, number: int) -> None:
    assert failure(await bench.run("python", code=code)) == (
        ErrorKind.UNKNOWN,
        f"PY_EXIT_{number}",
    )


async def test_I3_print_goes_to_the_log_as_it_comes(bench: Bench) -> None:
    code = "import sys\nprint('one')\nprint('two é', file=sys.stderr)\nprint('no end', end='')"
    outcome = await bench.run("python", code=code)
    assert outcome.error is None
    assert bench.log.text() == "one\nno end"
    assert bench.log.text("stderr") == "two é\n"


async def test_I3_output_comes_before_the_end(bench: Bench) -> None:
    code = """
import pathlib, time
print('here')
while not pathlib.Path('go').exists(): time.sleep(0.01)
"""
    task = asyncio.create_task(bench.run("python", code=code))
    while "here" not in bench.log.text():
        assert not task.done()
        await asyncio.sleep(0.01)
    (bench.scratch / "go").touch()
    assert (await task).error is None


async def test_K36_nothing_persists_but_the_folder(bench: Bench) -> None:
    await bench.run(
        "python", code="import json; json.mark = 1; open('f', 'w').write('kept'); z = 1"
    )
    code = "import json\nresult = [hasattr(json, 'mark'), 'z' in globals(), open('f').read()]"
    assert (await bench.run("python", code=code)).result == [False, False, "kept"]


async def test_K36_children_of_one_parent_have_their_own_randomness(bench: Bench) -> None:
    first = await bench.run("python", code="import random; result = random.random()")
    second = await bench.run("python", code="import random; result = random.random()")
    assert first.result != second.result


async def test_I3_code_sees_nothing_of_the_worker(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOETL_TOKEN", "canary-token")
    monkeypatch.setenv("DATABASE_URL", "canary-url")
    code = """
import os, sys
result = {"env": dict(os.environ), "cwd": os.getcwd(), "modules": sorted(sys.modules),
          "name": __name__, "fds": sorted(int(f) for f in os.listdir('/proc/self/fd'))}
"""
    outcome = await bench.run("python", code=code)
    assert isinstance(outcome.result, dict)
    found = outcome.result
    assert "canary" not in str(found["env"])
    assert found["cwd"] == str(bench.scratch)
    assert found["name"] == "__main__"
    assert not [name for name in found["modules"] if name.startswith("noetl")]
    # Its own three, the file of the result, and the folder it lists.
    assert len(found["fds"]) <= 5


async def _gone(pid: int) -> bool:
    for _ in range(300):
        if not _is_alive(pid):
            return True
        await asyncio.sleep(0.01)
    return False


def _is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


TREE = """
import os, pathlib, subprocess, time
sub = subprocess.Popen(["sleep", "1000"])
pid = os.fork()
if pid == 0:
    os.setsid()
    if os.fork() == 0:
        pathlib.Path("daemon").write_text(str(os.getpid()))
        time.sleep(1000)
    os._exit(0)
os.waitpid(pid, 0)
while not pathlib.Path("daemon").exists(): time.sleep(0.01)
pathlib.Path("pids").write_text(f"{os.getpid()} {sub.pid} " + pathlib.Path("daemon").read_text())
"""


async def _pids(folder: Path) -> list[int]:
    path = folder / "pids"
    for _ in range(1000):
        if path.exists() and len(found := path.read_text().split()) == 3:
            return [int(pid) for pid in found]
        await asyncio.sleep(0.01)
    raise AssertionError("the processes did not start")


@pytest.mark.parametrize("stubborn", [False, True])
async def test_D9_a_cancelled_task_leaves_no_process(bench: Bench, stubborn: bool) -> None:
    ignore = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" if stubborn else ""
    task = asyncio.create_task(bench.run("python", code=ignore + TREE + "time.sleep(1000)"))
    pids = await _pids(bench.scratch)
    started = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - started < 3.5
    for pid in pids:
        assert await _gone(pid)


async def test_K36_what_a_task_started_ends_with_it(bench: Bench) -> None:
    outcome = await bench.run("python", code=TREE + "result = 1")
    assert outcome.result == 1
    for pid in await _pids(bench.scratch):
        assert await _gone(pid)


async def test_K36_memory_has_a_limit(bench: Bench) -> None:
    bench.settings = replace(bench.settings, python_memory_bytes=256 * MIB)
    outcome = await bench.run("python", code="x = bytearray(1024 * 1024 * 1024)")
    assert failure(outcome) == (ErrorKind.LIMIT, "PY_MemoryError")
    outcome = await bench.run("python", code="x = []\nwhile True: x.append('x' * 1000)")
    assert failure(outcome) == (ErrorKind.LIMIT, "PY_MemoryError")


async def test_K36_cpu_time_has_a_limit(bench: Bench) -> None:
    bench.settings = replace(bench.settings, python_cpu_s=1)
    assert failure(await bench.run("python", code="while True: pass")) == (
        ErrorKind.LIMIT,
        "PY_CPU",
    )


async def test_K36_files_have_a_limit(bench: Bench) -> None:
    bench.settings = replace(bench.settings, python_file_bytes=MIB)
    outcome = await bench.run("python", code="open('big', 'wb').write(bytes(2 * 1024 * 1024))")
    assert failure(outcome) == (ErrorKind.LIMIT, "PY_OSError")


async def test_K36_processes_have_a_limit(bench: Bench) -> None:
    bench.settings = replace(bench.settings, python_processes=8)
    code = """
import os, time
for _ in range(30):
    if os.fork() == 0: time.sleep(1000)
time.sleep(1000)
"""
    assert failure(await bench.run("python", code=code)) == (ErrorKind.LIMIT, "PY_PROCESSES")


async def test_K36_a_result_has_a_limit(bench: Bench) -> None:
    bench.settings = replace(bench.settings, python_result_bytes=1000)
    outcome = await bench.run("python", code="result = 'x' * 2000")
    assert failure(outcome) == (ErrorKind.LIMIT, "RESULT_TOO_LARGE")


async def test_K36_a_killed_child_is_a_limit(bench: Bench) -> None:
    outcome = await bench.run("python", code="import os; os.kill(os.getpid(), 9)")
    assert failure(outcome) == (ErrorKind.LIMIT, "PY_KILLED")
    outcome = await bench.run("python", code="import os; os.kill(os.getpid(), 11)")
    assert failure(outcome) == (ErrorKind.UNKNOWN, "PY_SIGNAL_11")


async def test_I3_large_arguments_pass(bench: Bench) -> None:
    rows = [{"id": n, "text": "x" * 1000} for n in range(20_000)]
    code = "result = [len(rows), rows[-1]['id'], rows]"
    started = time.monotonic()
    outcome = await bench.run("python", code=code, args={"rows": rows})
    assert isinstance(outcome.result, list)
    assert outcome.result[:2] == [20_000, 19_999]
    assert outcome.result[2] == rows
    assert time.monotonic() - started < 20


async def test_I3_much_output_does_not_block(bench: Bench) -> None:
    outcome = await bench.run("python", code="for n in range(100_000): print('x' * 50)\nresult = 1")
    assert outcome.result == 1
    assert len(bench.log.text()) == 5_100_000


async def test_I3_many_at_once(bench: Bench) -> None:
    runs = [bench.run("python", code="result = n", args={"n": n}) for n in range(20)]
    assert [outcome.result for outcome in await asyncio.gather(*runs)] == list(range(20))


async def test_I3_the_forking_process_is_replaced_when_it_dies(bench: Bench) -> None:
    code = """
import os
keeper = open(f'/proc/{os.getppid()}/stat').read()
result = int(keeper.split()[3])
"""
    outcome = await bench.run("python", code=code)
    assert isinstance(outcome.result, int)
    os.kill(outcome.result, signal.SIGKILL)
    assert await _gone(outcome.result)
    assert (await bench.run("python", code="result = 2")).result == 2


async def test_I3_threads_are_waited_for(bench: Bench) -> None:
    code = """
import threading, time
result = []
def late():
    time.sleep(0.05)
    result.append("late")
threading.Thread(target=late).start()
"""
    assert (await bench.run("python", code=code)).result == ["late"]


async def test_I3_bad_keys_are_named(bench: Bench) -> None:
    outcome = await bench.run("python", cod="x", args=[1])
    assert failure(outcome) == (ErrorKind.SCHEMA, "BAD_ARGS")
    assert outcome.error is not None
    assert "`code` is missing" in outcome.error.message
    assert "`cod` is no key of this tool" in outcome.error.message
    assert "`args` must be a mapping" in outcome.error.message


async def test_I3_a_warm_task_takes_milliseconds(bench: Bench) -> None:
    await bench.run("python", code="result = 1")
    started = time.monotonic()
    for _ in range(20):
        await bench.run("python", code="result = 1")
    assert (time.monotonic() - started) / 20 < 0.1

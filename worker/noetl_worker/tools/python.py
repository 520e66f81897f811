"""`python`: code in a child process of its own (rules I3, K36, K44).

The child is forked by `python_server`, a warm process that knows nothing of the worker, so a task
costs a few milliseconds and starts clean. Request and result travel through anonymous files,
output through pipes. Whoever cancels `run` gets all processes of the task ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from noetl_core.outcomes import ErrorKind, Outcome, TaskError
from noetl_core.values import Value
from noetl_worker.tools.base import ToolContext, failed
from noetl_worker.tools.python_pipes import Pipe, TextPipe

GRACE_S = 0.5
"""Between the request to end and the kill."""
LET_GO_S = 3.0
"""How long a cancelled task waits to hear that all its processes are gone."""
THREAD_BYTES = 256 * 1024
"""Beyond this, results are parsed in a thread."""
POOL_KEY = ("python-server",)
_SERVER = Path(__file__).with_name("python_server.py")
_PASSED = ("PATH", "LANG", "LC_ALL", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR", "LD_LIBRARY_PATH")
"""All that code sees of the worker's environment."""
_LIMIT_SIGNALS = {
    signal.SIGXCPU: ("PY_CPU", "the code used up its CPU time"),
    signal.SIGXFSZ: ("PY_FILE_SIZE", "the code wrote too large a file"),
    signal.SIGKILL: ("PY_KILLED", "the code was killed, most likely for want of memory"),
}


class PythonArgs(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    code: str
    args: dict[str, object] | None = None


class PythonTool:
    """Runs code and takes what it leaves in `result`."""

    kind: ClassVar[str] = "python"
    Args: ClassVar[type[BaseModel]] = PythonArgs

    async def run(self, args: PythonArgs, ctx: ToolContext) -> Outcome:
        names = ctx.call.inputs.get("args")
        body: dict[str, Value] = {"code": args.code, "args": names if names else {}}
        with contextlib.ExitStack() as files:
            request, result = _file(files), _file(files)
            try:
                _write(request, await _request(_head(ctx), body))
            except (TypeError, ValueError, RecursionError) as error:
                message = f"`args` is not JSON: {error}"
                return failed(ErrorKind.SCHEMA, message, code="BAD_ARGS", source=self.kind)
            for last in (False, True):
                async with ctx.pools.use(POOL_KEY, _start, _stop) as server:
                    try:
                        ended = await _Run(ctx).run(server, request, result)
                        return await _outcome(ended, result, ctx)
                    except ServerGone:
                        if last:
                            raise
                await ctx.pools.drop(POOL_KEY)
        raise AssertionError("a task is tried at most twice")


def _file(files: contextlib.ExitStack) -> int:
    """A file without a name."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("noetl")
        files.callback(os.close, fd)
        return fd
    return files.enter_context(tempfile.TemporaryFile()).fileno()


def _head(ctx: ToolContext) -> dict[str, Value]:
    settings = ctx.settings
    return {
        "label": ctx.call.label,
        "scratch": str(ctx.scratch),
        "grace_s": GRACE_S,
        "processes": settings.python_processes,
        "result_bytes": min(settings.python_result_bytes, settings.python_file_bytes),
        "RLIMIT_AS": settings.python_memory_bytes,
        "RLIMIT_CPU": settings.python_cpu_s,
        "RLIMIT_FSIZE": settings.python_file_bytes,
        "RLIMIT_CORE": 0,
    }


async def _request(head: dict[str, Value], body: dict[str, Value]) -> bytes:
    """What the child is told; large arguments are written out in a thread."""
    start = json.dumps(head).encode()
    content = await asyncio.to_thread(lambda: json.dumps(body, allow_nan=False).encode())
    return struct.pack(">Q", len(start)) + start + content


def _write(fd: int, content: bytes) -> None:
    view, at = memoryview(content), 0
    while at < len(view):
        at += os.pwrite(fd, view[at:], at)


class ServerGone(Exception):
    """The process that forks is not there any more."""


@dataclass(slots=True)
class Server:
    process: subprocess.Popen[bytes]
    control: socket.socket

    def send(self, fds: list[int]) -> None:
        try:
            socket.send_fds(self.control, [b"t"], fds)
        except OSError:
            raise ServerGone("the process that runs python tasks is gone") from None


async def _start() -> Server:
    ours, theirs = socket.socketpair()
    environment = {name: os.environ[name] for name in _PASSED if name in os.environ}
    with theirs:
        process = await asyncio.to_thread(
            subprocess.Popen,
            [sys.executable, "-I", "-B", str(_SERVER), str(theirs.fileno())],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
    return Server(process, ours)


async def _stop(server: Server) -> None:
    server.control.close()
    try:
        await asyncio.to_thread(server.process.wait, 2.0)
    except subprocess.TimeoutExpired:
        server.process.kill()
        await asyncio.to_thread(server.process.wait)


@dataclass(frozen=True, slots=True)
class _Ended:
    why: str
    status: int


class _Run:
    """One child, from its start to the end of everything it started."""

    def __init__(self, ctx: ToolContext) -> None:
        self._ctx = ctx

    async def run(self, server: Server, request: int, result: int) -> _Ended | None:
        """How it ended; None when nobody can say."""
        log = self._ctx.log
        with contextlib.ExitStack() as ends:
            out = ends.enter_context(TextPipe(lambda text: log.write("stdout", text)))
            err = ends.enter_context(TextPipe(lambda text: log.write("stderr", text)))
            status = ends.enter_context(Pipe())
            leash_end, leash = os.pipe()
            ends.callback(os.close, leash)
            try:
                server.send(
                    [request, result, out.write_end, err.write_end, leash_end, status.write_end]
                )
            finally:
                os.close(leash_end)
                for pipe in (out, err, status):
                    pipe.close_write_end()
            try:
                # The future itself must survive a cancellation: it says when all is ended.
                await asyncio.shield(status.over)
            except asyncio.CancelledError:
                await self._end(leash, status)
                raise
            await asyncio.gather(out.over, err.over)
        return _read_status(bytes(status.content))

    async def _end(self, leash: int, status: Pipe) -> None:
        """End the child and all that it started; wait until it is so."""
        with contextlib.suppress(OSError):
            os.write(leash, b"e")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LET_GO_S):
                await asyncio.shield(status.over)


def _read_status(content: bytes) -> _Ended | None:
    if not content:
        return None
    said = json.loads(content)
    return _Ended(said["why"], said["status"])


async def _outcome(ended: _Ended | None, result: int, ctx: ToolContext) -> Outcome:
    if ended is None:
        return failed(
            ErrorKind.LIMIT, _LIMIT_SIGNALS[signal.SIGKILL][1], code="PY_KILLED", source="python"
        )
    if ended.why == "processes":
        most = ctx.settings.python_processes
        message = f"the code had more than {most} processes at once"
        return failed(ErrorKind.LIMIT, message, code="PY_PROCESSES", source="python")
    if os.WIFSIGNALED(ended.status):
        return _signalled(os.WTERMSIG(ended.status))
    code = os.WEXITSTATUS(ended.status)
    size = os.fstat(result).st_size
    if code != 0 or size == 0:
        message = f"the code ended its process with exit code {code}"
        return failed(ErrorKind.UNKNOWN, message, code=f"PY_EXIT_{code}", source="python")
    content = _all_of(result, size)
    try:
        is_small = size < THREAD_BYTES
        answer = _parsed(content) if is_small else await asyncio.to_thread(_parsed, content)
    except (ValueError, RecursionError):
        message = "the result cannot be read: it is nested too deeply, or not JSON"
        return failed(ErrorKind.SCHEMA, message, code="RESULT_NOT_JSON", source="python")
    error = answer.get("error")
    if isinstance(error, dict):
        return _raised(error, ctx)
    return Outcome(result=answer.get("result"))


def _all_of(fd: int, size: int) -> bytes:
    parts, at = list[bytes](), 0
    while at < size and (part := os.pread(fd, size - at, at)):
        parts.append(part)
        at += len(part)
    return b"".join(parts)


def _parsed(content: bytes) -> dict[str, Value]:
    answer = json.loads(content)
    if not isinstance(answer, dict):
        raise ValueError("no answer")
    return answer


def _signalled(number: int) -> Outcome:
    code, message = _LIMIT_SIGNALS.get(
        signal.Signals(number), (f"PY_SIGNAL_{number}", f"the code was ended by signal {number}")
    )
    kind = ErrorKind.LIMIT if number in _LIMIT_SIGNALS else ErrorKind.UNKNOWN
    return failed(kind, message, code=code, source="python")


_OURS = {"NotJson": "RESULT_NOT_JSON", "ResultTooLarge": "RESULT_TOO_LARGE"}
"""Errors that are no exceptions of the code."""


def _raised(error: dict[str, Value], ctx: ToolContext) -> Outcome:
    """The outcome of an exception, with its traceback in the message and in the log."""
    name, text = str(error.get("type")), str(error.get("message") or "")
    kind = ErrorKind.UNKNOWN
    if error.get("schema"):
        kind = ErrorKind.SCHEMA
    if error.get("limit"):
        kind = ErrorKind.LIMIT
    if name in _OURS:
        return failed(kind, text, code=_OURS[name], source="python")
    message = f"{name}: {text}" if text else name
    if error.get("line") is not None:
        message += f" (line {error['line']})"
    trace = error.get("traceback")
    if isinstance(trace, str):
        ctx.log.write("stderr", trace if trace.endswith("\n") else trace + "\n")
        message += "\n" + trace.rstrip("\n")
    if name == "MemoryError":
        message += f"\n{ctx.settings.python_memory_bytes:,} bytes of memory are allowed"
    return Outcome(
        error=TaskError(
            kind=kind, code=f"PY_{name}", message=message, source="python", exception_type=name
        ),
        helpers={"py": {"exception_type": name}},
    )

"""Runs the code of `python` tasks: a small process that does nothing but fork (rules I3, K36, K44).

Started once per worker as a script of its own, so that neither it nor its children hold anything
of the worker: no token, no keychain, no other task's data. It is one file, and uses the standard
library only, because nothing of ours can be imported from there.

For each task it is sent six file descriptors and forks a keeper. The keeper forks the child that
runs the code, watches it and everything it starts, and ends all of it when the child ends, when
the task has too many processes, or when the worker lets go of the leash (also by dying).
"""

import array
import contextlib
import ctypes
import gc
import io
import json
import os
import resource
import select
import signal
import socket
import struct
import sys
import time

FDS = 6
"""Request, result, standard output, standard error, leash, status."""
WATCH_S = 0.1
"""How often the processes of a task are counted."""
PR_SET_CHILD_SUBREAPER = 36
LIBC = ctypes.CDLL(None)

Request = dict[str, object]


def main() -> None:
    """Fork a keeper per request until the worker is gone."""
    control = socket.socket(fileno=int(sys.argv[1]))
    warm_up()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.collect()
    gc.freeze()
    while True:
        fds = receive(control)
        if fds is None:
            return
        if os.fork() == 0:
            control.close()
            try:
                keep(fds)
            finally:
                os._exit(1)
        for fd in fds:
            os.close(fd)


def warm_up() -> None:
    """Import what code usually needs: children have it for nothing."""
    import base64  # noqa: F401
    import collections  # noqa: F401
    import csv  # noqa: F401
    import datetime  # noqa: F401
    import decimal  # noqa: F401
    import hashlib  # noqa: F401
    import itertools  # noqa: F401
    import linecache  # noqa: F401
    import math  # noqa: F401
    import pathlib  # noqa: F401
    import random  # noqa: F401
    import re  # noqa: F401
    import statistics  # noqa: F401
    import threading  # noqa: F401
    import traceback  # noqa: F401
    import urllib.parse  # noqa: F401
    import uuid  # noqa: F401


def receive(control: socket.socket) -> list[int] | None:
    """The descriptors of the next request; None when the worker is gone."""
    room = socket.CMSG_LEN(FDS * array.array("i").itemsize)
    try:
        data, extra, _, _ = control.recvmsg(1, room)
    except ConnectionResetError:
        return None
    if not data:
        return None
    fds = array.array("i")
    for _, _, content in extra:
        fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
    return list(fds)


def keep(fds: list[int]) -> None:
    """Watch over one task and say how it ended."""
    request, result, out, err, leash, status = fds
    head = read_head(request)
    with contextlib.suppress(AttributeError):
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    wake, waker = os.pipe()
    for fd in (wake, waker):
        os.set_blocking(fd, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    pid = os.fork()
    if pid == 0:
        signal.set_wakeup_fd(-1)
        for fd in (leash, status, wake, waker):
            os.close(fd)
        run_child(head, request, result, out, err)
    for fd in (request, result, out, err):
        os.close(fd)
    why, code = watch(pid, head, leash, wake)
    end_all()
    os.write(status, json.dumps({"why": why, "status": code}).encode())
    os._exit(0)


def watch(pid: int, head: Request, leash: int, wake: int) -> tuple[str, int]:
    """Wait for the end of the child; answer why it ended and its wait status."""
    why, most = "ended", int(str(head["processes"]))
    kill_at = 0.0
    while True:
        code = reap(pid)
        if code is not None:
            return why, code
        readable, _, _ = select.select([leash, wake] if why == "ended" else [wake], [], [], WATCH_S)
        if wake in readable:
            with contextlib.suppress(BlockingIOError):
                os.read(wake, 512)
        if leash in readable:
            # A byte: end it gracefully. Nothing: the worker is gone.
            asked = os.read(leash, 1)
            why, kill_at = "stopped", time.monotonic() + float(str(head["grace_s"]))
            kill_group(pid, signal.SIGTERM if asked else signal.SIGKILL)
        if why == "ended" and len(descendants()) > most:
            why = "processes"
        if why == "processes":
            kill_all()
        if why == "stopped" and time.monotonic() >= kill_at:
            kill_group(pid, signal.SIGKILL)


def reap(pid: int) -> int | None:
    """Collect what has ended; the status of the child when it is among them."""
    found = None
    with contextlib.suppress(ChildProcessError):
        while True:
            ended, code = os.waitpid(-1, os.WNOHANG)
            if ended == 0:
                break
            if ended == pid:
                found = code
    return found


def kill_group(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def descendants() -> list[int]:
    """Every process of the task: all that started below the keeper, daemons included."""
    found: list[int] = []
    left = [os.getpid()]
    while left:
        pid = left.pop()
        children = children_of(pid)
        found += children
        left += children
    return found


def children_of(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as children:
                found += [int(child) for child in children.read().split()]
    return found


def end_all() -> None:
    """Kill every process of the task; whatever is orphaned by that becomes our child."""
    while kill_all():
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def kill_all() -> bool:
    """One round of killing; says whether there was anything to kill."""
    alive = descendants()
    for pid in alive:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    return bool(alive)


def read_head(request: int) -> Request:
    size = struct.unpack(">Q", os.pread(request, 8, 0))[0]
    head: Request = json.loads(os.pread(request, size, 8))
    return head


def run_child(head: Request, request: int, result: int, out: int, err: int) -> None:
    """The child: set the stage, run the code, hand in the result. Never returns."""
    code = 1
    try:
        set_stage(head, result, out, err)
        body = read_body(request)
        os.close(request)
        answer = execute(str(head["label"]), str(body["code"]), body["args"])
        hand_in(result, answer, int(str(head["result_bytes"])))
        code = 0
    except SystemExit as ending:
        code = exit_code(ending)
    except MemoryError:
        # Without memory, the shortest word.
        os.ftruncate(result, 0)
        os.pwrite(result, b'{"error": {"type": "MemoryError", "limit": true}}', 0)
        code = 0
    except BaseException as error:
        print(f"the task cannot be run: {error!r}", file=sys.stderr)
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def set_stage(head: Request, result: int, out: int, err: int) -> None:
    """A session, a folder, streams and limits of its own."""
    os.setsid()
    for number in (signal.SIGINT, signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (out, 1), (err, 2)):
        os.dup2(source, target)
    for fd in (null, out, err):
        os.close(fd)
    os.set_inheritable(result, False)
    scratch = str(head["scratch"])
    os.chdir(scratch)
    os.environ.update({"HOME": scratch, "TMPDIR": scratch, "PWD": scratch})
    sys.path.append(scratch)
    sys.argv = [str(head["label"])]
    # Streams of its own: those of the server have taken note of what they were opened on.
    sys.stdout = sys.__stdout__ = text_stream(1)  # type: ignore[misc]  # as at any start
    sys.stderr = sys.__stderr__ = text_stream(2)  # type: ignore[misc]
    set_limits(head)


def text_stream(fd: int) -> io.TextIOWrapper:
    return open(fd, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)


def set_limits(head: Request) -> None:
    for name in ("RLIMIT_AS", "RLIMIT_CPU", "RLIMIT_FSIZE", "RLIMIT_CORE"):
        limit, kind = int(str(head[name])), getattr(resource, name)
        _, most = resource.getrlimit(kind)
        if most != resource.RLIM_INFINITY:
            limit = min(limit, most)
        # A second of grace for CPU: the soft limit has a signal of its own, the hard one has not.
        hard = limit + 1 if name == "RLIMIT_CPU" and most == resource.RLIM_INFINITY else limit
        resource.setrlimit(kind, (limit, hard))


def read_body(request: int) -> Request:
    with open(request, "rb", closefd=False) as file:
        file.seek(0)
        size = struct.unpack(">Q", file.read(8))[0]
        file.seek(8 + size)
        body: Request = json.load(file)
        return body


def exit_code(ending: SystemExit) -> int:
    if ending.code is None:
        code = 0
    elif isinstance(ending.code, int):
        code = ending.code & 0xFF
    else:
        print(ending.code, file=sys.stderr)
        code = 1
    # Status 0 without a result tells the worker that the code ended itself.
    return code


def execute(label: str, code: str, args: object) -> Request:
    """Run the code; answer its result or its error."""
    import linecache
    import threading
    import types

    filename = f"<{label}>"
    linecache.cache[filename] = (len(code), None, code.splitlines(True), filename)
    main_module = types.ModuleType("__main__")
    sys.modules["__noetl__"], sys.modules["__main__"] = sys.modules["__main__"], main_module
    names = main_module.__dict__
    names.update(args if isinstance(args, dict) else {})
    try:
        compiled = compile(code, filename, "exec", dont_inherit=True)
        exec(compiled, names)
        # As at the end of any program: threads that are no daemons are waited for.
        threading._shutdown()  # type: ignore[attr-defined]  # what the interpreter itself calls
        return {"result": as_json(names.get("result"), "result")}
    except SystemExit:
        raise
    except NotJson as error:
        return {"error": {"type": "NotJson", "message": str(error), "schema": True}}
    except BaseException as error:
        return {"error": described(error, filename)}


class NotJson(Exception):
    """The result holds something that JSON has no word for."""


def as_json(value: object, path: str) -> object:
    """The result as JSON; `NotJson` names the place and the type (rule K36)."""
    import datetime
    import decimal
    import uuid

    texts = (uuid.UUID, decimal.Decimal)

    def walk(value: object, path: str) -> object:
        kind = type(value)
        if value is None or kind is bool or kind is str or kind is int:
            return value
        if isinstance(value, dict):
            return {key_text(key, path): walk(one, f"{path}.{key}") for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [walk(one, f"{path}[{index}]") for index, one in enumerate(value)]
        if isinstance(value, float):
            if value - value != 0:
                raise NotJson(f"{path} is {float(value)!r}, which is not JSON")
            return float(value)
        if isinstance(value, int):
            return int(value)
        if isinstance(value, str):
            return str.__str__(value)
        if isinstance(value, datetime.date):
            return value.isoformat()
        if isinstance(value, texts):
            return str(value)
        raise NotJson(f"{path} is of type {type_name(value)}, which is not JSON")

    try:
        return walk(value, path)
    except RecursionError:
        raise NotJson(f"{path} is nested too deeply, or holds itself") from None


def key_text(key: object, path: str) -> str:
    if isinstance(key, str):
        return str.__str__(key)
    raise NotJson(f"{path} has a key {key!r} of type {type_name(key)}; JSON keys are text")


def type_name(value: object) -> str:
    kind = type(value)
    is_plain = kind.__module__ in ("builtins", "__main__")
    return kind.__qualname__ if is_plain else f"{kind.__module__}.{kind.__qualname__}"


def described(error: BaseException, filename: str) -> Request:
    """An exception as the author sees it: their lines only, none of ours."""
    import traceback

    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    lines = [one.lineno for one in traceback.extract_tb(trace) if one.filename == filename]
    if isinstance(error, SyntaxError) and error.filename == filename and error.lineno:
        lines.append(error.lineno)
    shown = traceback.TracebackException(type(error), error, trace, limit=-40)
    try:
        text = "".join(shown.format())
    except Exception:
        text = type(error).__name__
    return {
        "type": type(error).__name__,
        "message": text_of(error),
        "line": lines[-1] if lines else None,
        "traceback": text[-16_000:],
        "schema": isinstance(error, SyntaxError | TypeError | ValueError | KeyError | IndexError),
        "limit": isinstance(error, MemoryError)
        or (isinstance(error, OSError) and error.errno == 27),
    }


def text_of(error: BaseException) -> str:
    try:
        return str(error)[:8_000]
    except Exception:
        return ""


def hand_in(result: int, answer: Request, most: int) -> None:
    """Write the answer where the worker reads it."""
    try:
        content = json.dumps(answer).encode()
    except RecursionError:
        said = {"type": "NotJson", "message": "result is nested too deeply", "schema": True}
        content = json.dumps({"error": said}).encode()
    if len(content) > most:
        message = f"the result has {len(content):,} bytes; {most:,} are allowed"
        said = {"type": "ResultTooLarge", "message": message, "limit": True}
        content = json.dumps({"error": said}).encode()
    os.ftruncate(result, 0)
    view = memoryview(content)
    at = 0
    while at < len(view):
        at += os.pwrite(result, view[at:], at)


if __name__ == "__main__":
    main()

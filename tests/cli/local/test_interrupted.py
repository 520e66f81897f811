"""What a run promises when it is interrupted, killed or asked from elsewhere."""

from __future__ import annotations

import signal
import time
from pathlib import Path

from tests.support.processes import Cli

SLOW = """\
    metadata: {name: slow}
    workload: {folder: ""}
    executor: {spec: {final_step: bye}}
    workflow:
      - step: before
        tool:
          - name: mark
            kind: python
            args: {folder: "{{ workload.folder }}"}
            code: |
              open(folder + "/before", "a").write("x")
              result = "marked"
        next: {arcs: [{step: during}]}
      - step: during
        tool:
          - name: nap
            kind: python
            args: {folder: "{{ workload.folder }}"}
            code: |
              import os, time
              open(folder + "/during", "a").write("x")
              while not os.path.exists(folder + "/go"):
                  time.sleep(0.02)
              result = "woken"
        next: {arcs: [{step: after}]}
      - step: after
        tool: [{name: end, kind: noop, result: "{{ ctx.note | default('no note') }}"}]
      - step: bye
        tool: [{name: bye, kind: noop}]
    """


def slow(cli: Cli) -> tuple[str, ...]:
    return cli.write("slow.yaml", SLOW), "--set", f"folder={cli.folder}", "-o", "json"


def test_one_interrupt_cancels_gracefully(cli: Cli) -> None:
    running = cli.start("run", *slow(cli))
    running.until("during queued")
    running.send(signal.SIGINT)
    done = running.wait()
    assert done.code == 3, done.err
    assert (done.json["phase"], done.json["reason"]) == ("Cancelled", "Cancelled")
    # `final_step` ran, the rest did not.
    assert done.json["steps"] == {"total": 3, "done": 2, "failed": 0, "skipped": 0, "cancelled": 1}


def test_a_second_interrupt_ends_it_at_once(cli: Cli) -> None:
    running = cli.start("run", *slow(cli))
    running.until("during queued")
    running.send(signal.SIGINT)
    running.until("cancelling; press Ctrl-C again")
    running.send(signal.SIGINT)
    done = running.wait()
    assert done.code == 3, done.err
    # Unless the graceful end was quicker, `final_step` did not run.
    assert done.json["phase"] == "Cancelled"
    assert done.json["steps"]["total"] in (2, 3)
    assert cli("verify", done.json["executionId"]).code == 0


def test_a_killed_run_goes_on_where_its_log_ends(cli: Cli) -> None:
    running = cli.start("run", *slow(cli))
    running.until("during queued")
    _until_written(cli.folder / "during")
    running.send(signal.SIGKILL)
    assert running.wait().code == -signal.SIGKILL

    (killed,) = cli.json("list", "--limit", "1")
    assert killed["phase"] == "Running"
    (cli.folder / "go").touch()
    resumed = cli("resume", killed["executionId"], "-o", "json")
    assert resumed.code == 0, resumed.err
    assert resumed.json["result"] == "no note"
    assert (cli.folder / "before").read_text() == "x"
    assert (cli.folder / "during").read_text() == "xx"
    assert resumed.json["steps"] == {
        "total": 4, "done": 4, "failed": 0, "skipped": 0, "cancelled": 0,
    }  # fmt: skip
    assert cli("verify", killed["executionId"]).code == 0
    # Once more changes nothing, and says the same.
    again = cli("resume", killed["executionId"], "-o", "json")
    assert (again.code, again.json) == (0, resumed.json)


def _until_written(path: Path) -> None:
    until = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_others_reach_a_run_through_the_store(cli: Cli) -> None:
    running = cli.start("run", *slow(cli))
    running.until("during queued")
    execution = cli.json("list", "--limit", "1")[0]["executionId"]
    busy = cli("resume", execution, "-o", "json")
    assert (busy.code, "is being run by" in busy.json["error"]["message"]) == (2, True)
    assert cli("approve", execution, "--set", "note=noted", "--reason", "a test").code == 0
    assert cli.json("suspend", execution)["phase"] == "Suspended"
    assert cli.json("resume", execution)["phase"] == "Running"
    (cli.folder / "go").touch()
    done = running.wait()
    assert (done.code, done.json["result"]) == (0, "noted")


def test_cancel_reaches_a_run_and_what_nobody_runs(cli: Cli) -> None:
    running = cli.start("run", *slow(cli))
    running.until("during queued")
    execution = cli.json("list", "--limit", "1")[0]["executionId"]
    assert cli("cancel", execution, "--reason", "enough").code == 0
    done = running.wait()
    assert (done.code, "enough" in done.json["message"]) == (3, True)

    running = cli.start("run", *slow(cli))
    running.until("during queued")
    running.send(signal.SIGKILL)
    running.wait()
    killed = cli.json("list", "--limit", "1")[0]["executionId"]
    assert killed != execution
    cancelled = cli.json("cancel", killed)
    assert (cancelled["executionId"], cancelled["phase"]) == (killed, "Cancelled")
    assert cancelled["steps"]["cancelled"] == 1
    assert cli("cancel", killed).code == 0
    assert cli("suspend", killed).code == 2


def test_watch_and_follow_end_with_the_run(cli: Cli) -> None:
    running = cli.start("run", *slow(cli))
    running.until("during queued")
    execution = cli.json("list", "--limit", "1")[0]["executionId"]
    watching = cli.start("watch", execution, "-o", "json")
    following = cli.start("events", execution, "-f", "-o", "json")
    watching.until("during")
    (cli.folder / "go").touch()
    assert running.wait().code == 0
    watched = watching.wait()
    assert (watched.code, watched.json["phase"]) == (0, "Succeeded")
    assert '"workflow.finished"' in following.wait().out.splitlines()[-1]


def test_scratch_and_secrets_are_remembered_for_a_resume(cli: Cli) -> None:
    cli.write("secrets.yaml", "my-api: {token: canary-77aa}\n")
    name = cli.write(
        "kept.yaml",
        """\
        metadata: {name: kept}
        workload: {folder: ""}
        keychain: [{name: pg, kind: postgres_credential}, {name: my_api, kind: bearer}]
        workflow:
          - step: write
            tool:
              - name: t
                kind: postgres
                auth: pg
                fetch: none
                command: CREATE TABLE t AS SELECT 7 AS n
            next: {arcs: [{step: during}]}
          - step: during
            tool:
              - name: nap
                kind: python
                args: {folder: "{{ workload.folder }}", token: "{{ keychain.my_api.token }}"}
                code: |
                  import os, time
                  while not os.path.exists(folder + "/go"):
                      time.sleep(0.02)
                  result = len(token)
            next: {arcs: [{step: read}]}
          - step: read
            tool: [{name: t, kind: postgres, auth: pg, fetch: one, command: SELECT n FROM t}]
        """,
    )
    running = cli.start(
        "run", name, "--set", f"folder={cli.folder}", "--secrets", "secrets.yaml",
        "--scratch-postgres", "pg",
    )  # fmt: skip
    running.until("during queued")
    running.send(signal.SIGKILL)
    running.wait()
    (cli.folder / "go").touch()
    execution = cli.json("list", "--limit", "1")[0]["executionId"]
    done = cli("resume", execution, "-o", "json")
    assert done.code == 0, done.err
    assert done.json["result"]["row"] == {"n": 7}
    assert not any((cli.data / "private").iterdir())

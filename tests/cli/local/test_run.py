"""`noetl run` as a process: documents, exit codes, secrets, children, scratch databases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.processes import Cli

RUN_KEYS = [
    "executionId", "playbook", "phase", "reason", "message", "result", "ctx", "steps",
    "failures", "startedAt", "finishedAt", "events",
]  # fmt: skip

HELLO = """\
    metadata: {name: hello}
    workload: {who: {name: world}, list: [{n: 1}]}
    workflow:
      - step: greet
        tool:
          - name: say
            kind: noop
            result: "hello {{ workload.who.name }} {{ workload.list[0].n }}"
            spec:
              policy: {rules: [{else: {then: {do: continue, set_ctx: {done: true}}}}]}
    """
FAILING = """\
    metadata: {name: failing}
    workflow:
      - step: load
        tool: [{name: boom, kind: python, code: "raise ValueError('no such luck')"}]
    """
GATE = """\
    metadata: {name: gate}
    workflow:
      - step: first
        tool: [{name: say, kind: noop, result: 1}]
        next: {arcs: [{step: gated}]}
      - step: gated
        spec:
          policy:
            admit:
              on_deny: wait
              rules:
                - {when: "{{ ctx.approved }}", then: {allow: true}}
                - {else: {then: {allow: false}}}
        tool: [{name: say, kind: noop, result: "opened by {{ ctx.who }}"}]
    """


def test_a_run_prints_one_document_and_exits_0(cli: Cli) -> None:
    cli.write("workload.yaml", "who: {name: file}\nlist: [{n: 7}]\n")
    done = cli(
        "run", cli.write("hello.yaml", HELLO), "-o", "json", "--workload", "workload.yaml",
        "--set", "who.name=you", "--set-json", "list.0.n=9",
    )  # fmt: skip
    assert done.code == 0, done.err
    document = done.json
    assert list(document) == RUN_KEYS
    assert document["phase"] == document["reason"] == "Succeeded"
    assert document["result"] == "hello you 9"
    assert document["ctx"] == {"done": True}
    assert document["steps"] == {"total": 1, "done": 1, "failed": 0, "skipped": 0, "cancelled": 0}
    assert document["failures"] == []
    assert document["events"] > 5
    assert "greet done" in " ".join(done.err.split())


def test_text_mode_prints_the_result_alone_and_quiet_says_nothing(cli: Cli) -> None:
    done = cli("run", cli.write("hello.yaml", HELLO), "-q")
    assert (done.code, done.out, done.err) == (0, "hello world 1\n", "")


def test_a_failed_run_exits_1_with_its_failures(cli: Cli) -> None:
    done = cli("run", cli.write("failing.yaml", FAILING), "-o", "json")
    assert done.code == 1
    assert (done.json["phase"], done.json["reason"]) == ("Failed", "StepFailed")
    (failure,) = done.json["failures"]
    assert list(failure) == ["step", "task", "iteration", "handled", "error"]
    assert list(failure["error"]) == ["kind", "code", "message"]
    assert (failure["step"], failure["task"], failure["iteration"]) == ("load", "boom", None)
    assert (failure["handled"], failure["error"]["code"]) == (False, "PY_ValueError")


def test_an_invalid_playbook_starts_nothing(fresh: Cli) -> None:
    done = fresh("run", fresh.write("bad.yaml", "metadata: {name: x}\nwrkflow: []\n"), "-o", "json")
    assert done.code == 1
    assert list(done.json) == ["phase", "reason", "problems"]
    assert (done.json["phase"], done.json["reason"]) == ("Failed", "InvalidPlaybook")
    assert any(problem["code"] == "A4.unknown-key" for problem in done.json["problems"])
    assert not fresh.data.exists()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["nothing.yaml"], "no such file"),
        (["hello.yaml", "--set", "who"], "path=value"),
        (["hello.yaml", "--set", "list.3.n=1"], "workload.list has 1 items"),
        (["hello.yaml", "--scratch-postgres", "pg"], "no keychain entry `pg`"),
        (["hello.yaml", "--playbooks", "nowhere"], "no such folder"),
        (["hello.yaml", "--workers", "0"], "--workers"),
        (["hello.yaml", "--timeout", "-1"], "--timeout"),
        (["hello.yaml", "--secrets", "nothing"], "no such file"),
    ],
)
def test_wrong_usage_exits_2_with_an_error_document(
    fresh: Cli, args: list[str], words: str
) -> None:
    fresh.write("hello.yaml", HELLO)
    done = fresh("run", *args, "-o", "json")
    assert done.code == 2
    assert words in done.json["error"]["message"]
    assert list(done.json["error"]) == ["message", "hint"]
    assert "Traceback" not in done.err


def test_K17_a_gate_still_waits_when_the_time_is_over(cli: Cli) -> None:
    done = cli("run", cli.write("gate.yaml", GATE), "--timeout", "1", "-o", "json")
    assert done.code == 4, done.err
    assert (done.json["phase"], done.json["finishedAt"]) == ("Waiting", None)
    execution = done.json["executionId"]
    assert f"noetl approve {execution} --local" in done.err
    assert "--set approved=true" in done.err

    approved = cli("approve", execution, "--set", "approved=true", "--set", "who=me", "-o", "json")
    assert approved.code == 0
    assert f"noetl resume {execution} --local" in approved.err
    resumed = cli("resume", execution, "-o", "json")
    assert resumed.code == 0, resumed.err
    assert resumed.json["result"] == "opened by me"
    assert resumed.json["namespace"] == "local"
    assert cli("verify", execution).code == 0


def test_K46_a_time_limit_cancels_what_runs(cli: Cli) -> None:
    name = cli.write(
        "sleep.yaml",
        """\
        metadata: {name: sleep}
        executor: {spec: {final_step: bye}}
        workflow:
          - step: long
            tool: [{name: nap, kind: python, code: "import time; time.sleep(600)"}]
          - step: bye
            tool: [{name: bye, kind: noop, result: "{{ args.reason }}"}]
        """,
    )
    done = cli("run", name, "--timeout", "1", "-o", "json")
    assert done.code == 3, done.err
    assert (done.json["phase"], done.json["reason"]) == ("Cancelled", "DeadlineExceeded")
    assert done.json["steps"] == {"total": 2, "done": 1, "failed": 0, "skipped": 0, "cancelled": 1}


CHILDREN = """\
    metadata: {name: parent}
    workflow:
      - step: ask
        tool:
          - {name: by_name, kind: playbook, playbook: beside, workload: {n: 1}}
          - {name: by_path, kind: playbook, playbook: teams/elsewhere, workload: {n: "{{ _prev }}"}}
          - {name: same_file, kind: playbook, playbook: third, workload: {n: "{{ _prev }}"}}
          - {name: detached, kind: playbook, playbook: late, wait: false}
          - {name: end, kind: noop, result: "{{ same_file }}"}
    ---
    metadata: {name: third}
    workload: {n: 0}
    workflow: [{step: s, tool: [{name: t, kind: noop, result: "{{ workload.n + 100 }}"}]}]
    ---
    metadata: {name: late}
    workflow:
      - step: s
        tool: [{name: t, kind: python, code: "import time; time.sleep(1); result = 1"}]
    """


def test_K37_children_are_found_and_waited_for(cli: Cli) -> None:
    tool = "{{name: t, kind: noop, result: {0}}}"
    plus = "workload: {{n: 0}}\nworkflow: [{{step: s, tool: [" + tool + "]}}]\n"
    cli.write("beside.yaml", "metadata: {name: beside}\n" + plus.format('"{{ workload.n + 1 }}"'))
    cli.write(
        "more/e.yaml",
        "metadata: {name: e, path: teams/elsewhere}\n" + plus.format('"{{ workload.n + 10 }}"'),
    )
    done = cli("run", cli.write("p.yaml", CHILDREN), "--playbooks", "more", "-o", "json")
    assert done.code == 0, done.err
    assert done.json["result"] == 112
    newest = cli.json("list", "--limit", "5")
    assert sorted(one["playbook"] for one in newest) == ["beside", "e", "late", "parent", "third"]
    assert {one["phase"] for one in newest} == {"Succeeded"}
    tree = cli.json("status", done.json["executionId"])["tree"]
    assert len(tree[0]["children"]) == 4


SCRATCH = """\
    metadata: {name: scratch}
    keychain: [{name: pg_main, kind: postgres_credential}]
    workflow:
      - step: sql
        tool:
          - name: write
            kind: postgres
            auth: pg_main
            fetch: one
            command:
              - CREATE TABLE t (n integer)
              - INSERT INTO t VALUES (1), (2)
              - SELECT count(*) AS n, current_database() AS db FROM t
    """


def test_a_scratch_database_is_empty_and_gone_afterwards(cli: Cli) -> None:
    name = cli.write("scratch.yaml", SCRATCH)
    first = cli("run", name, "--scratch-postgres", "pg_main", "-o", "json")
    assert first.code == 0, first.err
    second = cli("run", name, "--scratch-postgres", "pg_main", "-o", "json", "--keep")
    rows = [done.json["result"]["row"] for done in (first, second)]
    assert [row["n"] for row in rows] == [2, 2]
    assert "the scratch database is kept: postgresql://" in second.err
    assert _databases(cli.data).isdisjoint({rows[0]["db"]})
    assert rows[1]["db"] in _databases(cli.data)


def _databases(data: Path) -> set[str]:
    import asyncio

    import asyncpg

    from noetl_cli.local.postgres import LocalPostgres

    async def read() -> set[str]:
        connection = await asyncpg.connect(LocalPostgres(data).uri())
        try:
            return {row[0] for row in await connection.fetch("SELECT datname FROM pg_database")}
        finally:
            await connection.close()

    return asyncio.run(read())


def test_G3_secrets_appear_nowhere_and_leave_nothing(cli: Cli) -> None:
    canary = "canary-5d1f9c"
    cli.write("secrets.yaml", f"my-api:\n  token: {canary}\n")
    name = cli.write(
        "secret.yaml",
        """\
        metadata: {name: secret}
        keychain: [{name: my_api, kind: bearer}]
        workflow:
          - step: leak
            tool:
              - name: echo
                kind: python
                args: {token: "{{ keychain.my_api.token }}"}
                code: |
                  print("it is " + token)
                  result = {"length": len(token), "echo": token}
          - step: never
            tool: [{name: t, kind: noop}]
        """,
    )
    done = cli("run", name, "--secrets", "secrets.yaml", "-o", "json")
    assert done.code == 0, done.err
    assert done.json["result"] == {"length": len(canary), "echo": "***"}
    execution = done.json["executionId"]
    said = [done, cli("events", execution, "-o", "json"), cli("logs", execution)]
    assert "it is ***" in said[2].out
    assert all(canary not in one.out + one.err for one in said)
    assert not any((cli.data / "private").iterdir())


def test_two_runs_at_once_do_not_disturb_each_other(cli: Cli) -> None:
    name = cli.write(
        "both.yaml",
        """\
        metadata: {name: both}
        workload: {me: 0}
        workflow:
          - step: loop
            loop: {in: [1, 2, 3, 4, 5, 6], iterator: n, spec: {mode: parallel}}
            tool: [{name: t, kind: noop, result: "{{ workload.me * 10 + iter.n }}"}]
        """,
    )
    both = [cli.start("run", name, "--set", f"me={me}", "-o", "json") for me in (1, 2)]
    done = [one.wait() for one in both]
    assert [one.code for one in done] == [0, 0]
    assert [one.json["result"] for one in done] == [
        [me * 10 + n for n in range(1, 7)] for me in (1, 2)
    ]


def test_K47_a_rerun_adopts_what_stands_before_the_step(cli: Cli) -> None:
    name = cli.write(
        "again.yaml",
        """\
        metadata: {name: again}
        workload: {add: 1}
        workflow:
          - step: first
            tool:
              - name: t
                kind: python
                code: "import uuid; result = str(uuid.uuid4())"
            next: {arcs: [{step: second, args: {id: "{{ event.result }}"}}]}
          - step: second
            tool: [{name: t, kind: noop, result: {id: "{{ args.id }}", add: "{{ workload.add }}"}}]
        """,
    )
    first = cli.json("run", name)
    again = cli.json("rerun", first["executionId"], "--from-step", "second", "--set", "add=2")
    assert again["executionId"] != first["executionId"]
    assert again["result"] == {"id": first["result"]["id"], "add": 2}
    assert again["steps"]["total"] == 1
    unknown = cli("rerun", first["executionId"], "--from-step", "secnd", "-o", "json")
    assert (unknown.code, unknown.json["error"]["hint"]) == (2, "did you mean `second`?")


def test_commands_that_read_have_their_shapes(cli: Cli) -> None:
    document = cli.json("run", cli.write("hello.yaml", HELLO))
    execution = document["executionId"]
    (listed,) = cli.json("list", "--limit", "1")
    assert list(listed) == [
        "executionId", "name", "namespace", "playbook", "phase", "reason", "steps", "startedAt",
        "finishedAt",
    ]  # fmt: skip
    assert listed["executionId"] == execution
    events = [json.loads(line) for line in cli("events", "latest", "-o", "json").out.splitlines()]
    assert [event["seq"] for event in events] == list(range(1, document["events"] + 1))
    assert list(events[0]) == [
        "event_id", "execution_id", "seq", "name", "timestamp", "source", "entity_type",
        "entity_id", "step", "run_id", "task", "attempt", "iteration", "status", "payload",
    ]  # fmt: skip
    named = cli("events", execution, "--step", "greet", "--name", "task.*", "-o", "json").out
    assert [json.loads(line)["name"] for line in named.splitlines()] == [
        "task.started",
        "task.done",
    ]
    assert cli.json("result", execution) == "hello world 1"
    assert cli("result", execution, "--step", "greet").out == "hello world 1\n"
    assert cli.json("logs", execution) == []
    status = cli.json("status", execution)
    assert (status["tree"][0]["step"], status["tree"][0]["state"]) == ("greet", "done")
    for given in ("ffffffff", "0", "nonsense"):
        unknown = cli("status", given, "-o", "json")
        assert (unknown.code, list(unknown.json)) == (2, ["error"])


def test_K43_a_stored_result_is_shown_as_reference_and_printed_in_full(cli: Cli) -> None:
    name = cli.write(
        "big.yaml",
        """\
        metadata: {name: big}
        workflow:
          - step: make
            tool: [{name: t, kind: python, code: "result = ['x' * 100] * 2000"}]
        """,
    )
    document = cli.json("run", name)
    assert document["result"]["kind"] == "result_ref"
    assert cli.json("result", document["executionId"]) == ["x" * 100] * 2000


def test_verify_names_the_first_difference(fresh: Cli) -> None:
    import asyncio

    import asyncpg

    from noetl_cli.local.postgres import LocalPostgres

    async def tamper(statement: str) -> None:
        connection = await asyncpg.connect(LocalPostgres(fresh.data).uri("noetl"))
        try:
            await connection.execute("SET session_replication_role = replica")
            await connection.execute(statement)
        finally:
            await connection.close()

    with LocalPostgres(fresh.data):
        fresh.json("run", fresh.write("hello.yaml", HELLO))
        assert fresh.json("verify", "latest")["valid"] is True
        state = "replace(state::text, 'Succeeded', 'Failed')::json"
        asyncio.run(tamper(f"UPDATE noetl.execution SET state = {state}"))
        wrong = fresh("verify", "latest", "-o", "json")
        assert (wrong.code, wrong.json["difference"]["path"]) == (1, "state.phase")
        asyncio.run(tamper("UPDATE noetl.event SET step = 'other' WHERE seq = 4"))
        wrong = fresh("verify", "latest")
        assert (wrong.code, "event 4" in wrong.out) == (1, True)
        asyncio.run(tamper("DELETE FROM noetl.event WHERE seq = 3"))
        wrong = fresh("verify", "latest", "-o", "json")
        assert (wrong.code, wrong.json["difference"]["seq"]) == (1, 3)


def test_nothing_was_run_yet(fresh: Cli) -> None:
    assert fresh.json("list") == []
    assert fresh("status", "latest").code == 2
    assert not fresh.data.exists()

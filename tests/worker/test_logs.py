"""Output of tasks: in lines, masked, numbered, cut at limits with a word on how much."""

from noetl_worker.logs import LogLimits, RunLog
from noetl_worker.redact import Redactor


def run_log(limits: LogLimits | None = None, *secrets: str) -> RunLog:
    return RunLog(Redactor(secrets), lambda: "2026-01-01T00:00:00.000000Z", limits)


def test_lines_are_numbered_over_tasks_and_streams() -> None:
    log = run_log()
    one, two = log.task("fetch", 1), log.task("load", 2, "3")
    one.write("stdout", "a\nb")
    two.write("stderr", "x\r\n")
    one.write("stdout", "c\n\n")
    one.close()
    two.close()
    lines = log.take()
    assert [line.line for line in lines] == [0, 1, 2, 3]
    assert [(line.stream, line.text, line.task) for line in lines] == [
        ("stdout", "a", "fetch"),
        ("stderr", "x", "load"),
        ("stdout", "bc", "fetch"),
        ("stdout", "", "fetch"),
    ]
    assert (lines[1].attempt, lines[1].iteration) == (2, "3")
    assert log.take() == ()


def test_a_line_without_an_end_comes_at_the_close() -> None:
    log = run_log()
    task = log.task("t", 1)
    task.write("stdout", "no end")
    assert log.take() == ()
    task.close()
    assert [line.text for line in log.take()] == ["no end"]


def test_K32_a_secret_over_two_writes_and_lines_is_masked() -> None:
    log = run_log(None, "hunter22-hunter22")
    task = log.task("t", 1)
    for piece in ("the pass", "word is hunter22", "-\nhunter22 ok\n", "hun"):
        task.write("stdout", piece)
    task.close()
    assert [line.text for line in log.take()] == ["the password is *** ok", "hun"]


def test_what_is_over_the_limits_is_counted() -> None:
    log = run_log(LogLimits(lines=3, chars=1000, line_chars=10))
    task = log.task("t", 1)
    task.write("stdout", "a\n" + "b" * 15 + "\n" + "c\nd\n")
    task.close()
    texts = [(line.stream, line.text) for line in log.take()]
    assert texts == [
        ("stdout", "a"),
        ("stdout", "b" * 10),
        ("stdout", "b" * 5),
        ("tool", "cut: 2 more lines (4 characters)"),
    ]


def test_characters_have_a_limit_too() -> None:
    log = run_log(LogLimits(lines=1000, chars=100, line_chars=50))
    task = log.task("t", 1)
    for _ in range(1000):
        task.write("stdout", "x" * 40)
    task.close()
    lines = log.take()
    assert sum(len(line.text) for line in lines[:-1]) <= 150
    assert lines[-1].text.startswith("cut: ")


def test_texts_can_be_stored() -> None:
    log = run_log()
    task = log.task("t", 1)
    task.write("stdout", "a\0b\ud800c\n")
    task.close()
    assert log.take()[0].text == "a\ufffdb?c"


def test_a_batch_has_a_size() -> None:
    log = run_log(LogLimits(lines=10_000))
    task = log.task("t", 1)
    task.write("stdout", "x\n" * 5_000)
    assert [len(log.take(2_000)) for _ in range(4)] == [2_000, 2_000, 1_000, 0]

"""What holds for every command: help, version, the global options, wrong usage, errors."""

from __future__ import annotations

import pytest

from noetl_cli import main
from noetl_cli.group import COMMANDS
from tests.cli.conftest import Noetl


def test_help_of_the_program_lists_every_command(noetl: Noetl) -> None:
    for args in (["--help"], ["-h"], []):
        result = noetl(*args)
        assert result.code == 0
        assert all(name in result.out for name in COMMANDS)
        assert "Example" in result.out


@pytest.mark.parametrize("command", list(COMMANDS))
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_every_command_has_help_with_an_example(noetl: Noetl, command: str, flag: str) -> None:
    result = noetl(command, flag)
    assert result.code == 0
    assert result.err == ""
    example = result.out.split("Example", 1)[1].splitlines()[1]
    assert f"noetl {command}" in example
    assert "-o, --output text|json" in result.out
    assert "-q, --quiet" in result.out


def test_help_of_the_kubectl_plugin_says_kubectl_noetl(noetl: Noetl) -> None:
    assert main.program_name("/usr/bin/kubectl-noetl") == "kubectl noetl"
    assert main.program_name("/usr/bin/noetl") == "noetl"
    result = noetl("check", "-h", prog="kubectl noetl")
    assert result.out.startswith("Usage: kubectl noetl check FILE")
    assert "  kubectl noetl check playbook.yaml\n" in result.out


@pytest.mark.parametrize("args", [["--version"], ["check", "--version"]])
def test_version_stands_everywhere(noetl: Noetl, args: list[str]) -> None:
    result = noetl(*args)
    assert result.code == 0
    assert result.out.startswith("noetl 0.")


@pytest.mark.parametrize(
    "args",
    [
        ["-o", "json", "check"],
        ["check", "-o", "json"],
        ["--output=json", "check"],
        ["check", "--output", "json"],
        ["check", "-ojson"],
        ["check", "-qo", "json"],
        ["-o", "text", "check", "-o", "json"],
    ],
)
def test_output_may_stand_before_or_after_the_command(
    noetl: Noetl, valid: str, args: list[str]
) -> None:
    assert noetl(*args, valid).json[0]["valid"] is True


@pytest.mark.parametrize(
    ("args", "message", "hint"),
    [
        (["chekc"], "unknown command `chekc`", "did you mean `check`?"),
        (["frobnicate"], "unknown command `frobnicate`", "see `noetl --help`"),
        (["check", "--stirct", "x"], "unknown option `--stirct`", "did you mean `--strict`?"),
        (["check", "-z", "x"], "unknown option `-z`", "see `noetl check --help`"),
        (["check"], "missing argument 'FILE'", "see `noetl check --help`"),
        (["convert", "x"], "missing option '--to'", "see `noetl convert --help`"),
        (["convert", "x", "--to", "y"], "--to takes resource or document, not `y`", "see"),
        (["schema", "playbok"], "takes playbook or execution, not `playbok`", "mean `playbook`?"),
        (["graph", "a", "b"], "unexpected extra argument", "see `noetl graph --help`"),
        (["-o", "yaml", "check", "x"], "--output takes text or json, not `yaml`", "see"),
    ],
)
def test_wrong_usage_is_one_line_a_hint_and_exit_2(
    noetl: Noetl, args: list[str], message: str, hint: str
) -> None:
    result = noetl(*args)
    assert result.code == 2
    assert result.out == ""
    first, second = result.err.splitlines()
    assert first.startswith("error: ")
    assert message in first
    assert second.startswith("hint: ")
    assert hint in second


@pytest.mark.parametrize(
    "args", [["chekc", "-o", "json"], ["-o", "json", "check"], ["check", "--no", "--output=json"]]
)
def test_wrong_usage_with_json_is_an_error_document(noetl: Noetl, args: list[str]) -> None:
    result = noetl(*args)
    assert result.code == 2
    assert set(result.json["error"]) == {"message", "hint"}
    assert result.err.startswith("error: ")


def test_a_word_of_the_user_is_shown_escaped(noetl: Noetl) -> None:
    assert "\x1b" not in noetl("\x1b[31mx").err


def test_a_defect_of_ours_is_one_line(
    noetl: Noetl, valid: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(data: bytes) -> None:
        raise RuntimeError("first\nsecond")

    monkeypatch.setattr("noetl_core.check.check_text", broken)
    result = noetl("check", valid)
    assert result.code == 1
    assert result.err.splitlines()[0] == (
        "error: something went wrong inside noetl: RuntimeError: first"
    )
    assert "Traceback" not in result.err
    monkeypatch.setenv("NOETL_DEBUG", "1")
    assert "Traceback" in noetl("check", valid).err


def test_ctrl_c_is_exit_130_without_a_traceback(
    noetl: Noetl, valid: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(data: bytes) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("noetl_core.check.check_text", interrupted)
    result = noetl("check", valid)
    assert (result.code, result.out) == (130, "")
    assert "Traceback" not in result.err


def test_small_commands_need_neither_pydantic_nor_rich() -> None:
    import subprocess
    import sys

    code = (
        "import sys; from noetl_cli.main import run;"
        "run(['check', 'examples/hello.yaml', '-q', '-o', 'text']);"
        "print(sorted({'pydantic', 'rich', 'asyncio'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

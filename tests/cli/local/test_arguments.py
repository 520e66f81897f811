"""Arguments of local commands, read without starting anything."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from noetl_cli.commands import run as run_command
from noetl_cli.errors import UsageError
from noetl_cli.local import options, secrets
from noetl_cli.local.data import DataFolder, Memory
from noetl_cli.local.workload import composed, read_file, setting
from noetl_core.model import KeychainEntry, KeychainKind

OWN = {"a": {"b": 1, "keep": True}, "items": [{"n": 1}, {"n": 2}], "name": "x", "none": None}


def set_(*texts: str) -> dict[str, object]:
    return dict(composed(dict(OWN), [], [setting("--set", text) for text in texts]))


def test_set_reads_yaml_and_keeps_the_rest() -> None:
    assert set_("a.b=[1, two]")["a"] == {"b": [1, "two"], "keep": True}
    assert set_("name=007x", "a.b='7'")["a"] == {"b": "7", "keep": True}
    assert set_("name=null")["name"] is None
    assert set_("name=")["name"] is None
    assert set_("none.deep.er=1")["none"] == {"deep": {"er": 1}}


def test_set_merges_maps_and_replaces_lists() -> None:
    assert set_("a={c: 3}")["a"] == {"b": 1, "keep": True, "c": 3}
    assert set_("items=[9]")["items"] == [9]


def test_set_reaches_into_lists_by_number() -> None:
    assert set_("items.1.n=5")["items"] == [{"n": 1}, {"n": 5}]


def test_set_takes_escaped_dots() -> None:
    assert set_(r"a\.b=1")["a.b"] == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name", "path=value"),
        ("=1", "path=value"),
        ("a..b=1", "empty part"),
        ("name.x=1", "workload.name is a text"),
        ("items.7.n=1", "workload.items has 2 items"),
        ("items.one=1", "workload.items is a list"),
        ("a.b={", "--set a.b: the value is not YAML"),
    ],
)
def test_wrong_settings_name_the_path(text: str, words: str) -> None:
    with pytest.raises(UsageError) as raised:
        set_(text)
    assert words in raised.value.message


def test_set_json_is_strict() -> None:
    assert setting("--set-json", 'a={"b": [1]}').value == {"b": [1]}
    for wrong in ("a=yes", "a=NaN", "a="):
        with pytest.raises(UsageError, match="not JSON"):
            setting("--set-json", wrong)


def test_set_and_set_json_apply_in_the_order_given() -> None:
    command = typer.main.get_command(run_command.app)
    words = ["f.yaml", "--set", "a=1", "--set-json", "a=2", "--set", "b=3", "--set-json=a=4"]
    ctx = command.make_context("run", list(words))
    given = {"set_": ctx.params["set_"], "set_json": ctx.params["set_json"]}
    found = [(one.label, one.value) for one in options.settings_of(ctx, given)]
    assert found == [("a", 1), ("a", 2), ("b", 3), ("a", 4)]


def test_a_workload_file_is_one_mapping(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text("a: {b: 2}\n")
    assert composed(dict(OWN), [read_file(str(path))], [])["a"] == {"b": 2, "keep": True}
    path.write_text("- a\n")
    with pytest.raises(UsageError, match="one mapping"):
        read_file(str(path))
    with pytest.raises(UsageError, match="no such file"):
        read_file(str(tmp_path / "nothing.yaml"))


def test_secrets_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("api:\n  token: abc\n  port: 80\n  flag: true\n")
    assert secrets.read(str(path)) == {"api": {"token": b"abc", "port": b"80", "flag": b"true"}}


def test_secrets_of_a_folder_as_pods_have_them(tmp_path: Path) -> None:
    real = tmp_path / "api" / "..data"
    real.mkdir(parents=True)
    (real / "token").write_text("abc")
    (tmp_path / "api" / "token").symlink_to("..data/token")
    assert secrets.read(str(tmp_path)) == {"api": {"token": b"abc"}}


@pytest.mark.parametrize(
    "text",
    ["canary-7f3a", "api: canary-7f3a", "api: {k: {x: canary-7f3a}}", "api: [canary-7f3a", "- x"],
)
def test_wrong_secrets_are_never_quoted(tmp_path: Path, text: str) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(text)
    with pytest.raises(UsageError) as raised:
        secrets.read(str(path))
    assert "canary" not in raised.value.message + (raised.value.hint or "")


@pytest.mark.parametrize("name", ["../x", "a/b", "..", "."])
def test_names_of_secrets_stay_in_their_folder(tmp_path: Path, name: str) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(f'"{name}": {{k: v}}\n')
    with pytest.raises(UsageError, match="can't be the name"):
        secrets.read(str(path))


def test_secrets_are_laid_out_for_nobody_else(tmp_path: Path) -> None:
    folder = tmp_path / "keychain"
    secrets.write(folder, {"api": {"token": b"abc"}})
    assert (folder / "api" / "token").read_bytes() == b"abc"
    modes = [p.stat().st_mode & 0o777 for p in (folder, folder / "api", folder / "api" / "token")]
    assert modes == [0o700, 0o700, 0o600]


def test_a_scratch_credential_stands_where_the_map_looks_for_it() -> None:
    fields = {"host": "h", "port": "1", "user": "u", "password": "p", "dbname": "d", "uri": "U"}
    plain = KeychainEntry(name="pg_main", kind=KeychainKind.POSTGRES)
    assert secrets.with_credential({}, plain, fields)["pg-main"]["dbname"] == b"d"
    mapped = KeychainEntry(
        name="pg", kind=KeychainKind.POSTGRES, map={"db_host": "H", "password": "other/pw"}
    )
    found = secrets.with_credential({"other": {"x": b"1"}}, mapped, fields)
    assert found == {"pg": {"H": b"h"}, "other": {"x": b"1", "pw": b"p"}}


def test_a_process_is_alive_while_it_holds_its_lock(tmp_path: Path) -> None:
    folder = DataFolder(str(tmp_path / "d"))
    with folder.process() as holder:
        assert folder.is_alive(holder)
        assert folder.private(holder).stat().st_mode & 0o777 == 0o700
    assert not folder.is_alive(holder)
    assert not folder.private(holder).exists()


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path) -> None:
    folder = DataFolder(str(tmp_path / "d"))
    folder.make()
    (folder.path / "processes" / "noetl-1-dead.lock").touch()
    secrets.write(folder.private("noetl-1-dead"), {"api": {"token": b"abc"}})
    with folder.process():
        assert not folder.private("noetl-1-dead").exists()


def test_memory_of_an_execution_survives(tmp_path: Path) -> None:
    folder = DataFolder(str(tmp_path / "d"))
    folder.make()
    memory = Memory(file="/x.yaml", playbooks=["/p"], scratch_entry="pg", scratch_database="s")
    folder.remember("id", memory)
    assert folder.recall("id") == memory
    assert folder.recall("other") == Memory()


def test_the_default_folder_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert DataFolder(None).path == tmp_path / "noetl"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert DataFolder(None).path == tmp_path / ".local" / "share" / "noetl"

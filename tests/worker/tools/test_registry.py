"""Tools are found by entry point, ours and others', and what they are given is checked."""

import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict, field_validator

from noetl_core.check import check_text
from noetl_core.outcomes import ErrorKind, Outcome
from noetl_core.tools import BUILT_IN
from noetl_worker.tools import registry
from noetl_worker.tools.registry import ToolRegistry
from tests.support.tools import Bench

ROOT = Path(__file__).parents[3]


def test_every_built_in_kind_has_a_tool() -> None:
    # Tasks of the workbook are put in their place before anything runs.
    assert set(ToolRegistry().kinds()) >= set(BUILT_IN) - {"workbook"}


def test_listing_kinds_imports_no_library() -> None:
    code = (
        "import sys; from noetl_worker.tools.registry import ToolRegistry, known_kinds;"
        "ToolRegistry().kinds(), known_kinds();"
        "print([m for m in ('httpx', 'httpcore', 'duckdb', 'asyncpg') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


PLUGIN = {
    "pyproject.toml": """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "shouting-tool"
version = "1.0"
[project.entry-points."noetl.tools"]
shout = "shouting_tool:ShoutTool"
http = "shouting_tool:ShoutTool"
[tool.hatch.build.targets.wheel]
include = ["shouting_tool.py"]
""",
    "shouting_tool.py": """
from typing import ClassVar
from pydantic import BaseModel
from noetl_core.outcomes import Outcome
class Args(BaseModel):
    text: str
    times: int = 1
class ShoutTool:
    kind: ClassVar[str] = "shout"
    Args: ClassVar[type[BaseModel]] = Args
    async def run(self, args, ctx):
        return Outcome(result=args.text.upper() * args.times)
""",
}


@pytest.fixture
def plugin(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    for name, text in PLUGIN.items():
        (source / name).write_text(text)
    options = ["--no-deps", "--no-build-isolation", "--quiet", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(target)]
    subprocess.run([*command, str(source)], check=True, capture_output=True)
    monkeypatch.syspath_prepend(str(target))
    return target


async def test_a_tool_of_somebody_else_plugs_in(plugin: Path, tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    assert "shout" in bench.registry.kinds()
    outcome = await bench.run("shout", text="hey ", times=2)
    assert outcome.result == "HEY HEY "
    wrong = await bench.run("shout", times="many")
    assert wrong.error is not None
    assert wrong.error.message == "`text` is missing; `times` must be a whole number"
    # A built-in kind is not replaced.
    assert type(bench.registry.get("http")).__name__ == "HttpTool"


def test_a_plugged_in_kind_passes_the_checker(plugin: Path) -> None:
    text = """
metadata: {name: loud}
workflow:
  - step: one
    tool: {kind: shout, text: "{{ workload.x }}"}
workload: {x: 1}
"""
    assert any(p.code == "A5.unknown-kind" for c in check_text(text) for p in c.problems)
    assert not [p for c in check_text(text, registry.known_kinds()) for p in c.problems]


async def test_a_kind_that_is_not_there_is_named(tmp_path: Path) -> None:
    outcome = await Bench(tmp_path).run("shuot")
    assert outcome.error is not None
    assert outcome.error.kind is ErrorKind.NOT_FOUND
    assert "`shuot`" in outcome.error.message
    assert "python" in outcome.error.message


class _Tool:
    kind = "own"

    class Args(BaseModel):
        model_config = ConfigDict(extra="forbid")
        name: str
        inner: dict[str, int] = {}
        even: int = 0

        @field_validator("even")
        @classmethod
        def _is_even(cls, value: int) -> int:
            if value % 2:
                raise ValueError("must be even")
            return value

    async def run(self, args: BaseModel, ctx: object) -> Outcome:
        raise RuntimeError("broken inside")


async def test_what_is_wrong_is_named_by_key_and_not_quoted(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.registry._tools["own"] = _Tool()  # type: ignore[assignment]
    secret = "canary-secret"
    outcome = await bench.run("own", name=[secret], inner={"a": secret}, even=3, other=secret)
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.source) == (ErrorKind.SCHEMA, "own")
    assert secret not in outcome.error.message
    for said in ("`name` must be text", "`inner.a`", "`even` must be even", "`other` is no key"):
        assert said in outcome.error.message


async def test_a_tool_that_raises_is_an_outcome_all_the_same(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.registry._tools["own"] = _Tool()  # type: ignore[assignment]
    outcome = await bench.run("own", name="x")
    assert outcome.error is not None
    assert outcome.error.kind is ErrorKind.UNKNOWN
    assert "RuntimeError: broken inside" in outcome.error.message

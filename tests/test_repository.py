"""The layout that everything else relies on."""

from __future__ import annotations

import operator
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_operator_folder_never_hides_the_standard_library() -> None:
    modules = [
        path.name
        for path in (ROOT / "operator").iterdir()
        if path.suffix in (".py", ".so", ".pyc") or path.name == "__pycache__"
    ]
    assert modules == []
    assert "noetl" not in str(operator.__file__)


def test_python_starts_in_the_root_folder() -> None:
    code = "import operator, enum, collections; print(operator.add(1, 2))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "3\n", done.stderr


@pytest.mark.parametrize("package", ["core", "operator", "worker", "cli"])
def test_each_folder_holds_its_package(package: str) -> None:
    assert (ROOT / package / f"noetl_{package}" / "__init__.py").is_file()


def test_requirements_are_hashed_and_name_no_index() -> None:
    for path in sorted((ROOT / "requirements").glob("*.txt")):
        text = path.read_text()
        pins = re.findall(r"^[a-zA-Z0-9_.\[\]-]+==", text, re.MULTILINE)
        assert pins, path
        assert text.count("--hash=sha256:") >= len(pins), path
        assert "://" not in text, path


def test_every_extra_of_the_project_is_there() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {"operator", "worker", "local", "dev"} <= project["optional-dependencies"].keys()


def test_make_help_lists_every_target() -> None:
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    for target in ("run", "test", "lint", "fmt", "e2e", "bench", "docs", "crds"):
        assert f"make {target} " in done.stdout

"""The product's images, built for real from their Dockerfiles: `python -m e2e.images`.

What a build needs of this machine (pip's configuration) is lent to it as a secret. Each image is
built once for what goes into it; see `cluster.images`.
"""

from __future__ import annotations

import ast
import contextlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from e2e.cluster import images
from e2e.cluster.images import Image

ROOT = Path(__file__).parents[1]

OPERATOR = "noetl.local/noetl-operator:e2e"
WORKER = "noetl.local/noetl-worker:e2e"
POSTGRES = "noetl.local/postgres:e2e"

PARTS = [
    *("pyproject.toml", "README.md", "LICENSE", "requirements"),
    *("core", "operator", "worker", "cli"),
]
"""What the Dockerfiles copy: a change elsewhere in the repository makes no other image."""

PIP_OPTIONS = {
    *("index-url", "extra-index-url", "trusted-host", "find-links"),
    *("cert", "proxy", "default-timeout", "timeout", "retries"),
}
"""The part of pip's configuration that says where packages come from."""


def operator() -> Image:
    return _product("operator", OPERATOR)


def worker() -> Image:
    return _product("worker", WORKER)


def postgres() -> Image:
    folder = Path(__file__).parent / "postgres"
    return images.build(folder / "Dockerfile", folder, POSTGRES)


def _product(part: str, tag: str) -> Image:
    with _context() as context, _pip_configuration() as lent:
        return images.build(context / part / "Dockerfile", context, tag, lent=lent)


@contextlib.contextmanager
def _context() -> Iterator[Path]:
    """The files that the Dockerfiles copy, without what lies around beside them."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *PARTS]
    listed = subprocess.run(words, cwd=ROOT, text=True, capture_output=True, check=True).stdout
    with tempfile.TemporaryDirectory(prefix="noetl-context-") as name:
        for file in filter(None, listed.split("\0")):
            source, target = ROOT / file, Path(name, file)
            if source.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, target)
        yield Path(name)


@contextlib.contextmanager
def _pip_configuration() -> Iterator[list[str]]:
    """The flags that lend this machine's pip configuration to a build."""
    options = _pip_options()
    with tempfile.NamedTemporaryFile("w", prefix="pip-", suffix=".conf") as file:
        file.write("[global]\n")
        file.writelines(f"{name} = {value}\n" for name, value in options.items())
        file.flush()
        flags = [f"--secret=id=pip,src={file.name}"]
        folders = [Path(word) for word in options.get("find-links", "").split()]
        flags += [f"--volume={path}:{path}:ro" for path in folders if path.is_dir()]
        yield flags


def _pip_options() -> dict[str, str]:
    """From pip's files and from the environment, which wins as it does for pip."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], text=True, capture_output=True, check=True
    ).stdout
    pairs = [line.partition("=") for line in listed.splitlines() if "=" in line]
    found: dict[str, str] = {}
    for name, _, value in sorted(pairs, key=lambda pair: pair[0].startswith(":env:")):
        option = name.rpartition(".")[2]
        if option in PIP_OPTIONS:
            found[option] = str(ast.literal_eval(value))
    return found


def main() -> None:
    for build in (operator, worker, postgres):
        image = build()
        print(image.tag, image.archive, f"{image.archive.stat().st_size / 2**20:.0f} MiB")


if __name__ == "__main__":
    main()

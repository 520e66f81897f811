"""Moves the cluster to another Kubernetes: `python -m e2e.cluster.gomod 1.35.4`.

Kubernetes' own module points at folders of its repository, which a program outside of it cannot
use; each is replaced by its published twin. Writes go.mod and go.sum of `go/kube`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from e2e.cluster import build, run

HEADER = "module noetl.io/e2e/kube\n\ngo 1.25.0\n\n"


def text(version: str, kubernetes: str) -> str:
    """The go.mod for a version, from the text of that Kubernetes' own."""
    twins = sorted(set(re.findall(r"^\s*(k8s\.io/\S+) => \./staging", kubernetes, re.M)))
    twin_version = f"v0.{version.split('.', 1)[1]}"
    replacements = "".join(f"\t{twin} => {twin} {twin_version}\n" for twin in twins)
    return f"{HEADER}require k8s.io/kubernetes v{version}\n\nreplace (\n{replacements})\n"


def main() -> None:
    version = sys.argv[1].removeprefix("v")
    folder = build.PROGRAMS["kube"].folder
    module = f"k8s.io/kubernetes@v{version}"
    run.command(["go", "mod", "download", module], cwd=folder)
    cache = run.command(["go", "env", "GOMODCACHE"], cwd=folder).strip()
    (folder / "go.mod").write_text(text(version, Path(cache, module, "go.mod").read_text()))
    (folder / "go.sum").unlink(missing_ok=True)
    run.command(["go", "mod", "tidy"], cwd=folder)


if __name__ == "__main__":
    main()

"""`python -m noetl_cli.crds FOLDER`: writes the custom resource definitions that the model makes.

`make crds` calls it; a test compares the folder with `texts`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import yaml

from noetl_core import crds
from noetl_core.shape import Schema

HEADER = "# Made from the model by `make crds`: change the model, not this file.\n"


class _Dumper(yaml.SafeDumper):
    """Writes equal parts out, where YAML would refer to the first with an alias."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def texts() -> dict[str, str]:
    """File name → content."""
    return {_file_name(crd): _text(crd) for crd in (crds.playbook_crd(), crds.execution_crd())}


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts().items():
        (folder / name).write_text(text)


def _file_name(crd: Schema) -> str:
    """As the tools of the Kubernetes world name them: `noetl.io_playbooks.yaml`."""
    metadata = crd["metadata"]
    assert isinstance(metadata, dict)
    plural, _, group = str(metadata["name"]).partition(".")
    return f"{group}_{plural}.yaml"


def _text(crd: Schema) -> str:
    """Innermost mappings on one line each: in block style the depth alone would fill the file."""
    body = yaml.dump(
        crd,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=110,
        default_flow_style=None,
    )
    return HEADER + body


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: python -m noetl_cli.crds FOLDER", file=sys.stderr)
        return 2
    write(Path(sys.argv[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())

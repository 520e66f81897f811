"""Mounts below a folder: they must be gone before the folder is deleted, or their content goes."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from e2e.cluster import errors, run


def below(folder: Path) -> list[Path]:
    """The mount points below a folder, innermost first."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    points = (Path(_unescape(line.split()[4])) for line in lines)
    return sorted((p for p in points if p.is_relative_to(folder)), reverse=True)


def delete_tree(folder: Path) -> None:
    """Unmount everything below the folder and delete it."""
    for point in below(folder):
        run.succeeds(["umount", "-l", point])
    if left := below(folder):
        raise errors.ClusterError(f"{folder} is not deleted, {left[0]} is still mounted")
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        shutil.rmtree(folder)


def _unescape(text: str) -> str:
    """The kernel writes blanks in paths as octal."""
    return re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), text)

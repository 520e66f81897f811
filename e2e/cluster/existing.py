"""A cluster that somebody else runs, named by a kubectl context: checked, never started."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from e2e.cluster import build, errors, kube, layout


class Existing(kube.Client):
    """The cluster behind a kubectl context."""

    def __init__(self, context: str) -> None:
        self.context = context

    @classmethod
    def named(cls) -> Existing | None:
        """The one that the environment names, if it names one."""
        context = os.environ.get(layout.CONTEXT_VARIABLE)
        return cls(context) if context else None

    @property
    def kubeconfig(self) -> Path:
        first = os.environ.get("KUBECONFIG", "").split(os.pathsep)[0]
        return Path(first or "~/.kube/config").expanduser()

    @property
    def netns(self) -> tuple[str, ...]:
        return ()

    @property
    def env(self) -> dict[str, str]:
        return {"KUBECONFIG": str(self.kubeconfig)}

    def up(self) -> None:
        self.kubectl("get", "--raw", "/readyz")

    def down(self) -> None:
        """Not ours to end."""

    def start(self, part: str) -> None:
        raise errors.ClusterError(f"cannot start {part} of {self.context}: it was not made here")

    def stop(self, part: str, *, grace: float = 0.0) -> None:
        raise errors.ClusterError(f"cannot stop {part} of {self.context}: it was not made here")

    def command(self) -> tuple[str, ...]:
        return (*_kubectl(), "--context", self.context)


def _kubectl() -> tuple[str, ...]:
    """kubectl as installed, else our own: the one binary under that name."""
    if found := shutil.which("kubectl"):
        return (found,)
    link = layout.cache_dir() / "bin" / "kubectl"
    target = build.program("kube")
    if not (link.is_symlink() and link.readlink() == target):
        link.unlink(missing_ok=True)
        link.symlink_to(target)
    return (str(link),)

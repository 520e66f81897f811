"""What tests may ask of a Kubernetes, made here or not, and how kubectl is called for it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from e2e.cluster import errors

Manifest = str | Mapping[str, object] | Sequence[Mapping[str, object]]
"""YAML or JSON text, one object, or several."""


class Kubernetes(Protocol):
    """A Kubernetes to test on."""

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig with every right."""

    @property
    def netns(self) -> tuple[str, ...]:
        """The command prefix that runs a program where the API server can be reached."""

    @property
    def env(self) -> dict[str, str]:
        """What kubectl, helm and other clients must have in their environment."""

    def up(self) -> None:
        """Have it running and ready."""

    def down(self) -> None:
        """Have it gone, if it was made here."""

    def kubectl(  # `input` as in subprocess.run
        self,
        *args: str,
        input: str | None = None,  # noqa: A002
        check: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl. Raises KubectlError when it fails, unless `check` is false."""

    def apply(self, manifest: Manifest, *flags: str) -> subprocess.CompletedProcess[str]:
        """Server-side apply of a manifest."""

    def start(self, part: str) -> None:
        """Start a part that `stop` stopped."""

    def stop(self, part: str, *, grace: float = 0.0) -> None:
        """Stop a part: SIGTERM and `grace` seconds first, then SIGKILL."""


class Client:
    """kubectl with its first words already said; the half that both kinds of cluster share."""

    def command(self) -> tuple[str, ...]:
        """The words before kubectl's own arguments."""
        raise NotImplementedError

    def kubectl(  # `input` as in subprocess.run
        self,
        *args: str,
        input: str | None = None,  # noqa: A002
        check: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        argv = [*self.command(), *args]
        done = subprocess.run(argv, input=input, text=True, capture_output=True)
        if check and done.returncode:
            raise errors.KubectlError(args, done)
        return done

    def apply(self, manifest: Manifest, *flags: str) -> subprocess.CompletedProcess[str]:
        return self.kubectl("apply", "--server-side", *flags, "-f", "-", input=text_of(manifest))


def text_of(manifest: Manifest) -> str:
    if isinstance(manifest, str):
        return manifest
    if isinstance(manifest, Mapping):
        return json.dumps(manifest)
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifest)})

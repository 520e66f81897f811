"""What can go wrong with a test cluster.

ClusterError
├── Unsupported    this machine cannot run one
├── BuildError     a binary or an image could not be built
├── StartError     a part died or did not become ready in time
└── KubectlError   kubectl said no
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence


class ClusterError(Exception):
    """The test cluster could not do what it was asked."""


class Unsupported(ClusterError):
    """No cluster can run here."""


class BuildError(ClusterError):
    """A binary or an image could not be built."""


class StartError(ClusterError):
    """A part of the cluster died or did not become ready in time."""


class KubectlError(ClusterError):
    """kubectl ended with an error; its words are the message."""

    def __init__(self, args: Sequence[str], done: subprocess.CompletedProcess[str]) -> None:
        self.done = done
        super().__init__(f"kubectl {' '.join(args)}: {done.stderr.strip() or done.stdout.strip()}")

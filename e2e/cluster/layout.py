"""Where everything of one cluster lives, and the addresses inside its network namespace.

Pure: nothing here touches the disk. The addresses are the same in every cluster, since each has a
network namespace of its own.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PREFIX = "noetl-e2e-"
"""Names of state folders, network namespaces and cgroups start with it."""

CONTEXT_VARIABLE = "NOETL_E2E_CONTEXT"
"""Names a kubectl context to test against, instead of a cluster made here."""

NODE = "node0"
NODE_IP = "10.200.0.1"
SERVICE_CIDR = "10.201.0.0/16"
KUBERNETES_IP = "10.201.0.1"
DNS_IP = "10.201.0.10"
POD_CIDR = "10.202.0.0/16"
SERVER = f"https://{NODE_IP}:6443"

PAUSE_IMAGE = "noetl.local/pause:1"
COREDNS_IMAGE = "noetl.local/coredns:1"


def cache_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder for what is built once: binaries and images."""
    base = environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
    return Path(base, "noetl-e2e")


def states_dir() -> Path:
    """The folder that holds the clusters' state folders."""
    return Path(tempfile.gettempdir()).resolve()


@dataclass(frozen=True, slots=True)
class Layout:
    """The places of the cluster called `name`."""

    name: str
    parent: Path

    @classmethod
    def of(cls, name: str) -> Layout:
        return cls(name, states_dir())

    @property
    def full_name(self) -> str:
        """The cluster's name where names are shared with the rest of the machine."""
        return PREFIX + self.name

    @property
    def root(self) -> Path:
        return self.parent / self.full_name

    @property
    def netns(self) -> Path:
        return Path("/run/netns", self.full_name)

    @property
    def enter(self) -> tuple[str, ...]:
        """The command prefix that runs a program inside the namespace.

        Not `ip netns exec`: it makes a mount namespace too, and the kubelet's mounts would vanish.
        """
        return ("nsenter", f"--net={self.netns}")

    @property
    def bin(self) -> Path:
        return self.root / "bin"

    @property
    def pki(self) -> Path:
        return self.root / "pki"

    @property
    def cni(self) -> Path:
        return self.root / "cni"

    @property
    def containerd_socket(self) -> Path:
        return self.root / "containerd.sock"

    @property
    def owner(self) -> Path:
        """Says whose the cluster is; see `registry`."""
        return self.root / "owner.json"

    @property
    def kubectl_cache(self) -> Path:
        """kubectl keeps what a server offers by its address, and all our servers have the same."""
        return self.root / "kubectl-cache"

    def kubeconfig(self, user: str = "admin") -> Path:
        return self.root / f"{user}.kubeconfig"

    def record(self, part: str) -> Path:
        """Where the process of a part is written down."""
        return self.root / "run" / f"{part}.json"

    def log(self, part: str) -> Path:
        return self.root / "logs" / f"{part}.log"

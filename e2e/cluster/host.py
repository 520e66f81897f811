"""What the machine must have: can a cluster run here, and the Debian packages it stands on."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster import build, errors, layout, run

CNI_FOLDERS = (Path("/usr/lib/cni"), Path("/opt/cni/bin"))


@dataclass(frozen=True, slots=True)
class Package:
    """A Debian package, and the commands that show it is there."""

    name: str
    commands: tuple[str, ...]

    def present(self) -> bool:
        if self.name == "containernetworking-plugins":
            return cni_folder() is not None
        return all(shutil.which(command) for command in self.commands)


CONTROL_PLANE = (Package("iproute2", ("ip",)), Package("openssl", ("openssl",)))
NODE = (
    *CONTROL_PLANE,
    Package("containerd", ("containerd", "ctr")),
    Package("runc", ("runc",)),
    Package("containernetworking-plugins", ()),
    Package("iptables", ("iptables",)),
    Package("conntrack", ("conntrack",)),
)
IMAGES = (Package("buildah", ("buildah",)), Package("debootstrap", ("debootstrap",)))


def supported() -> str | None:
    """Why no cluster can run here, or None when one can (or one was named)."""
    if os.environ.get(layout.CONTEXT_VARIABLE):
        return None
    if sys.platform != "linux":
        return f"a cluster needs Linux, this is {sys.platform}"
    if os.geteuid() != 0:
        return "a cluster needs root: network namespaces, mounts and cgroups"
    return build.go_problem() or _missing_problem() or _kernel_problem()


def install(packages: Iterable[Package]) -> None:
    """Install those of the packages that are missing."""
    missing = [package.name for package in packages if not package.present()]
    if not missing:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise errors.Unsupported(f"install these first: {' '.join(missing)}")
    print(f"installing {' '.join(missing)}", file=sys.stderr)
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    apt = ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300"]
    try:
        run.command([*apt, "update"], env=env)
        run.command([*apt, "install", "-y", "--no-install-recommends", *missing], env=env)
    except errors.ClusterError as error:
        raise errors.Unsupported(f"cannot install {' '.join(missing)}: {error}") from None


def cni_folder() -> Path | None:
    """Where the network plugins are: distributions do not agree."""
    return next((folder for folder in CNI_FOLDERS if (folder / "bridge").exists()), None)


def _missing_problem() -> str | None:
    missing = [package.name for package in NODE if not package.present()]
    if missing and shutil.which("apt-get") is None:
        return f"not installed, and no apt-get to do it: {' '.join(missing)}"
    return None


def _kernel_problem() -> str | None:
    if not run.succeeds(["unshare", "--net", "true"]):
        return "this machine does not allow network namespaces"
    if "overlay" not in Path("/proc/filesystems").read_text():
        return "the kernel has no overlay file system"
    if shutil.which("ip") and not run.succeeds(
        ["unshare", "--net", "ip", "link", "add", "probe0", "type", "bridge"]
    ):
        return "the kernel has no network bridges"
    return None

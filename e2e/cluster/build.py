"""The Go programs of the cluster, each built once and kept in the user's cache folder.

The sources under `go/` pin every module by its digest. What is built is named by the digest of
those files, the Go version and the flags, so a change of any of them is another file, and two
checkouts share what they have in common.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster import errors, layout

SOURCES = Path(__file__).parent / "go"


@dataclass(frozen=True, slots=True)
class Program:
    """A Go program: its folder under `go/`, what to build in it, and what to stamp into it."""

    name: str
    package: str = "."
    stamps: Callable[[Path], dict[str, str]] = lambda folder: {}

    @property
    def folder(self) -> Path:
        return SOURCES / self.name


def module_version(folder: Path, module: str) -> str:
    """The version of a module that a go.mod asks for, as `v1.2.3`."""
    found = re.search(rf"^\s*(?:require )?{re.escape(module)} (v\S+)", _go_mod(folder), re.M)
    if found is None:
        raise errors.BuildError(f"{folder}/go.mod does not require {module}")
    return found[1]


def _kube_stamps(folder: Path) -> dict[str, str]:
    """Clients refuse a server that does not know its own version."""
    version = module_version(folder, "k8s.io/kubernetes")
    major, minor, _ = version.removeprefix("v").split(".")
    package = "k8s.io/component-base/version"
    return {
        f"{package}.gitVersion": version,
        f"{package}.gitMajor": major,
        f"{package}.gitMinor": minor,
    }


def _helm_stamps(folder: Path) -> dict[str, str]:
    """`helm template` assumes the stamped Kubernetes version; charts may ask for a newer one."""
    minor = module_version(folder, "k8s.io/client-go").split(".")[1]
    return {
        "helm.sh/helm/v3/internal/version.version": module_version(folder, "helm.sh/helm/v3"),
        "helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor": "1",
        "helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor": minor,
    }


PROGRAMS = {
    program.name: program
    for program in (
        Program("kube", stamps=_kube_stamps),
        Program("coredns"),
        Program("pause"),
        Program("helm", package="helm.sh/helm/v3/cmd/helm", stamps=_helm_stamps),
    )
}


def program(name: str) -> Path:
    """The built program, after building it if need be."""
    wanted = PROGRAMS[name]
    target = layout.cache_dir() / "bin" / f"{name}-{_digest(wanted)}"
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        with locked(target.parent / f"{name}.lock"):
            if not target.exists():
                _build(wanted, target)
    return target


def go_problem(name: str = "kube") -> str | None:
    """Why the Go on this machine cannot build the program, or None."""
    if shutil.which("go") is None:
        return "Go is not installed"
    folder = PROGRAMS[name].folder
    needed = re.search(r"^go (\d+)\.(\d+)", _go_mod(folder), re.M)
    have = re.match(r"go(\d+)\.(\d+)", go_version(folder))
    if needed and have and tuple(map(int, have.groups())) < tuple(map(int, needed.groups())):
        return f"Go {'.'.join(needed.groups())} or newer is needed, here is {have[0]}"
    return None


def go_version(folder: Path) -> str:
    done = subprocess.run(["go", "env", "GOVERSION"], cwd=folder, text=True, capture_output=True)
    return done.stdout.strip()


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a file lock; the kernel lets go of it when we die, however we die."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _go_mod(folder: Path) -> str:
    return (folder / "go.mod").read_text()


def _flags(wanted: Program) -> list[str]:
    stamps = wanted.stamps(wanted.folder)
    linker = " ".join(["-s -w", *(f"-X {name}={value}" for name, value in stamps.items())])
    return ["-mod=readonly", "-trimpath", "-buildvcs=false", f"-ldflags={linker}", wanted.package]


def _digest(wanted: Program) -> str:
    digest = hashlib.sha256()
    for word in (go_version(wanted.folder), os.uname().machine, *_flags(wanted)):
        digest.update(word.encode() + b"\0")
    for file in sorted(wanted.folder.iterdir()):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def _download(wanted: Program, env: dict[str, str]) -> None:
    """Get the modules first: a machine that cannot have them is no fault of the sources."""
    if not wanted.folder.joinpath("go.sum").exists():
        return
    argv = ["go", "mod", "download"]
    done = subprocess.run(argv, cwd=wanted.folder, env=env, text=True, capture_output=True)
    if done.returncode:
        words = done.stderr.strip().splitlines()[-1:]
        raise errors.Unsupported(f"cannot download the modules of {wanted.name}: {' '.join(words)}")


def _build(wanted: Program, target: Path) -> None:
    """Build beside the target and rename, so that the target is whole or not there."""
    if problem := go_problem(wanted.name):
        raise errors.Unsupported(f"cannot build {wanted.name}: {problem}")
    for left in target.parent.glob(f".{wanted.name}-*"):
        left.unlink()
    temporary = target.with_name(f".{target.name}")
    print(f"building {wanted.name} (once; the first time takes minutes)", file=sys.stderr)
    begun = time.monotonic()
    argv = ["nice", "-n", "10", "go", "build", "-o", str(temporary), *_flags(wanted)]
    env = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": ""}
    _download(wanted, env)
    try:
        if subprocess.run(argv, cwd=wanted.folder, env=env).returncode:
            raise errors.BuildError(f"go build of {wanted.folder} failed; its words are above")
        temporary.rename(target)
    finally:
        temporary.unlink(missing_ok=True)
    print(f"built {wanted.name} in {time.monotonic() - begun:.0f} s", file=sys.stderr)

"""Container images without a registry and without a Docker engine.

A Debian base comes from `debootstrap`, `buildah` builds the real Dockerfiles on it (their
`ARG BASE_IMAGE`), and the archive goes straight to the node. What was built is kept in the user's
cache folder, named by the digest of all that went into it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster import build as programs
from e2e.cluster import errors, host, layout, run
from e2e.cluster.cluster import Cluster

SUITE = "bookworm"
"""The Debian whose python3 is 3.11."""

PACKAGES = "ca-certificates,python3,python3-pip,python3-venv"

TRUST = Path("/etc/ssl/certs/ca-certificates.crt")
"""The authorities this machine trusts; lent to the builds, not put into the images."""

KEPT_ARCHIVES = 3
"""Of one image: other checkouts, and runs that have just begun, may want an older one."""

SKIPPED = {".git", ".venv", "__pycache__", "node_modules"}
"""Folders that are no part of a context that git does not know."""


@dataclass(frozen=True, slots=True)
class Image:
    """A built image, and the archive that holds it."""

    tag: str
    archive: Path


def base_image() -> str:
    """The tag of a base that looks like the official slim Python image, built if need be."""
    recipe = f"{SUITE} {PACKAGES} {os.uname().machine} 2"
    tag = f"localhost/noetl-e2e-base:{hashlib.sha256(recipe.encode()).hexdigest()[:16]}"
    host.install(host.IMAGES)
    with programs.locked(_cache() / "base.lock"):
        if not run.succeeds(_buildah("inspect", "--type", "image", tag)):
            _make_base(tag)
    return tag


def build(
    dockerfile: Path,
    context: Path,
    tag: str,
    args: Mapping[str, str] | None = None,
    *,
    lent: Sequence[str] = (),
) -> Image:
    """Build a Dockerfile on the base (its build argument BASE_IMAGE).

    The context is what git tracks or would track in the folder, so a stray file changes nothing.
    `lent` are further flags of the build for what it may use and must not keep: secrets, volumes.
    """
    args = {"BASE_IMAGE": base_image(), **(args or {})}
    files = _context_files(context)
    name = tag.replace("/", "_").replace(":", "_")
    archive = _cache() / f"{name}-{_digest(dockerfile, context, files, tag, args)}.tar"
    with programs.locked(_cache() / f"{name}.lock"):
        if not archive.exists():
            _build(dockerfile, context, files, Image(tag, archive), args, lent)
    return Image(tag, archive)


def load(cluster: Cluster, image: Image) -> None:
    """Bring an image to the cluster's node; Pods say `imagePullPolicy: Never`."""
    cluster.import_image(image.archive)


def _cache() -> Path:
    folder = layout.cache_dir() / "images"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _buildah(command: str, *args: str) -> list[str]:
    store = layout.cache_dir() / "buildah"
    return ["buildah", "--root", f"{store}/root", "--runroot", f"{store}/run", command, *args]


def _mirror() -> str:
    """The Debian mirror that this machine's apt uses."""
    words = ["apt-get", "indextargets", "--format", "$(SITE) $(RELEASE)", "Created-By: Packages"]
    sites = [line.split() for line in run.command(words).splitlines()]
    if not sites:
        raise errors.BuildError("apt knows no Debian mirror: run 'apt-get update'")
    return next((site for site, release in sites if release == SUITE), sites[0][0])


def _make_base(tag: str) -> None:
    print("building the base image (once; about two minutes)", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=_cache(), prefix=".base-") as folder:
        root = Path(folder, "root")
        run.command(
            ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", SUITE, root, _mirror()]
        )
        _like_the_official_image(root)
        with _container("scratch") as container:
            run.command(_buildah("add", "--quiet", container, str(root), "/"))
            run.command(_buildah("config", "--env", "PATH=/usr/local/bin:/usr/bin:/bin", container))
            run.command(_buildah("commit", "--quiet", container, tag))


def _like_the_official_image(root: Path) -> None:
    """`python` and `pip install` work, and what only an installer needs is gone."""
    (root / "usr/local/bin/python").symlink_to("/usr/bin/python3")
    for marker in root.glob("usr/lib/python3*/EXTERNALLY-MANAGED"):
        marker.unlink()
    for folder in ("var/cache/apt/archives", "var/lib/apt/lists"):
        shutil.rmtree(root / folder)
        (root / folder / "partial").mkdir(parents=True)


@contextlib.contextmanager
def _container(image: str) -> Iterator[str]:
    name = run.command(_buildah("from", "--quiet", image)).strip()
    try:
        yield name
    finally:
        run.succeeds(_buildah("rm", name))


def _context_files(context: Path) -> list[Path]:
    """The context's files, relative to it."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(words, cwd=context, capture_output=True)
    if not done.returncode:
        found = {Path(os.fsdecode(name)) for name in done.stdout.split(b"\0") if name}
    else:
        found = {path.relative_to(context) for path in context.rglob("*")}
    return sorted(
        path
        for path in found
        if (context / path).is_file() and not SKIPPED.intersection(path.parts)
    )


def _digest(
    dockerfile: Path, context: Path, files: Sequence[Path], tag: str, args: Mapping[str, str]
) -> str:
    digest = hashlib.sha256(f"{tag} {sorted(args.items())}".encode())
    digest.update(dockerfile.read_bytes())
    for file in files:
        path = context / file
        digest.update(f"\0{file}\0{path.stat().st_mode & 0o111}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _build(
    dockerfile: Path,
    context: Path,
    files: Sequence[Path],
    image: Image,
    args: Mapping[str, str],
    lent: Sequence[str],
) -> None:
    print(f"building the image {image.tag}", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=_cache(), prefix=".build-") as folder:
        staged = Path(folder, "context")
        staged.mkdir()
        for file in files:
            (staged / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(context / file, staged / file)
        _bud(dockerfile, staged, image.tag, args, lent)
        archive = Path(folder, "image.tar")
        run.command(_buildah("push", "--quiet", image.tag, f"docker-archive:{archive}:{image.tag}"))
        archive.rename(image.archive)
    _forget_old(image)


def _forget_old(image: Image) -> None:
    """Archives are large, and every change of the sources makes one."""
    name = image.archive.stem.rpartition("-")[0]
    found = sorted(_cache().glob(f"{name}-*.tar"), key=lambda path: path.stat().st_mtime)
    for old in found[:-KEPT_ARCHIVES]:
        old.unlink(missing_ok=True)


def _bud(
    dockerfile: Path, context: Path, tag: str, args: Mapping[str, str], lent: Sequence[str]
) -> None:
    flags = [*(f"--build-arg={name}={value}" for name, value in args.items()), *lent]
    if TRUST.exists():
        flags.append(f"--volume={TRUST}:{TRUST}:ro")
    try:
        run.command(
            _buildah(
                "bud", "--isolation=chroot", "--network=host", "--format=docker",
                "--pull-never", "--layers", *flags, "--tag", tag, "--file", str(dockerfile),
                str(context),
            )
        )  # fmt: skip
    except errors.ClusterError as error:
        raise errors.BuildError(str(error)) from None

"""A container image from a few files, written as the archive that `docker save` would write."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from pathlib import Path

NOBODY = "65534:65534"


def write(out: Path, *, tag: str, program: Path) -> None:
    """An image that holds one static program, run as nobody. Same input, same bytes."""
    layer = _tar({"program": program.read_bytes()}, mode=0o755)
    config = json.dumps(
        {
            "architecture": {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine],
            "os": "linux",
            "config": {"Entrypoint": ["/program"], "User": NOBODY, "WorkingDir": "/"},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{_sha256(layer)}"]},
        }
    ).encode()
    names = {"config": f"{_sha256(config)}.json", "layer": f"{_sha256(layer)}/layer.tar"}
    manifest = [{"Config": names["config"], "RepoTags": [tag], "Layers": [names["layer"]]}]
    files = {
        names["config"]: config,
        names["layer"]: layer,
        "manifest.json": json.dumps(manifest).encode(),
    }
    temporary = out.with_name(f".{out.name}.{os.getpid()}")
    temporary.write_bytes(_tar(files, mode=0o644))
    temporary.rename(out)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _tar(files: dict[str, bytes], *, mode: int) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), mode
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()

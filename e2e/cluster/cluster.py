"""A Kubernetes of our own: one node, or only the control plane, in a network namespace.

Ready means ready: `up` returns when the API server answers, the default ServiceAccount is there
and, with nodes, the node is Ready and cluster DNS answers.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from contextlib import AbstractContextManager
from pathlib import Path

from e2e.cluster import (
    archive,
    build,
    cgroups,
    config,
    dns,
    errors,
    host,
    kube,
    layout,
    network,
    parts,
    pki,
    processes,
    registry,
    run,
    teardown,
)
from e2e.cluster.layout import Layout
from e2e.cluster.processes import Process

READY_TIMEOUT_S = 90.0
"""How long each thing that `up` waits for may take on a busy machine."""

LOG_LINES = 15
"""How much of a dead part's log its error quotes."""

_numbers = itertools.count(1)


class Cluster(kube.Client):
    """A cluster made here, called by a name; without one it belongs to this process alone.

    `nodes=False` is the control plane only: enough for CRDs, RBAC and admission, in seconds.
    `keep=True` lets it outlive this process.
    """

    def __init__(self, name: str | None = None, *, nodes: bool = True, keep: bool = False) -> None:
        self.place = Layout.of(name or f"{os.getpid()}-{next(_numbers)}")
        self.nodes = nodes
        self.keep = keep

    def __enter__(self) -> Cluster:
        self.up()
        return self

    def __exit__(self, *exception: object) -> None:
        self.down()

    @property
    def name(self) -> str:
        return self.place.name

    @property
    def kubeconfig(self) -> Path:
        return self.place.kubeconfig()

    @property
    def netns(self) -> tuple[str, ...]:
        return self.place.enter

    @property
    def parts(self) -> dict[str, parts.Builder]:
        return parts.ALL if self.nodes else parts.CONTROL_PLANE

    @property
    def env(self) -> dict[str, str]:
        """What kubectl, helm and other clients must have in their environment."""
        return {
            "KUBECONFIG": str(self.kubeconfig),
            "KUBECACHEDIR": str(self.place.kubectl_cache),
        }

    def inside(self) -> AbstractContextManager[None]:
        """Let this thread open sockets inside the cluster's network."""
        return network.inside(self.place.netns)

    def command(self) -> tuple[str, ...]:
        kubectl = f"{self.place.bin}/kubectl"
        cache = f"--cache-dir={self.place.kubectl_cache}"
        return (*self.netns, kubectl, f"--kubeconfig={self.kubeconfig}", cache)

    def up(self) -> None:
        """Have the cluster running and ready. One that runs already is left as it is."""
        if reason := host.supported():
            raise errors.Unsupported(reason)
        host.install(host.NODE if self.nodes else host.CONTROL_PLANE)
        binary = build.program("kube")
        images = _images() if self.nodes else []
        with registry.lock():
            registry.sweep()
            if self.place.root.exists():
                self._must_run()
                return
            registry.claim(self.place)
        try:
            self._start(binary, images)
        except BaseException:
            self.down()
            raise
        if self.keep:
            registry.keep(self.place)

    def down(self) -> None:
        """End the cluster and remove every trace of it."""
        with registry.lock():
            teardown.remove(self.place)

    def alive(self, part: str) -> bool:
        return registry.alive(self.place, part)

    def pid(self, part: str) -> int:
        """The process of a live part, for tests that signal it themselves."""
        process = Process.read(self.place.record(part))
        if process is None or not process.alive():
            raise errors.ClusterError(f"{part} is not running")
        return process.pid

    def stop(self, part: str, *, grace: float = 0.0) -> None:
        if process := Process.read(self.place.record(part)):
            process.end(grace=grace)

    def start(self, part: str) -> None:
        """Start a part, unless it runs, and wait until it serves."""
        self._spawn(part)
        if part in ("etcd", "apiserver"):
            self._wait_for_server()

    def _must_run(self) -> None:
        dead = [part for part in self.parts if not self.alive(part)]
        if dead:
            raise errors.ClusterError(
                f"the cluster {self.name} is there but {', '.join(dead)} does not run: "
                f"take it down first"
            )

    def _start(self, binary: Path, images: list[Path]) -> None:
        self._prepare(binary)
        for part in ("containerd", "etcd", "apiserver"):
            if part in self.parts:
                self._spawn(part)
        self._wait_for_server()
        for part in self.parts:
            self._spawn(part)
        if self.nodes:
            self._wait_for_node(images)
        self._wait("the default ServiceAccount", "get", "serviceaccount", "default")

    def _prepare(self, binary: Path) -> None:
        place = self.place
        network.create(place)
        place.bin.mkdir()
        for name in parts.BINARIES:
            (place.bin / name).symlink_to(binary)
        pki.create(place.pki)
        files = config.control_plane_files(place)
        if self.nodes:
            cgroups.create(place.full_name)
            place.cni.mkdir()
            cni_folder = host.cni_folder()
            assert cni_folder is not None, "installed before"
            files |= config.node_files(place, cni_folder)
        for path, text in files.items():
            path.write_text(text)

    def _spawn(self, part: str) -> None:
        if self.alive(part):
            return
        argv = [*self.netns, *parts.ALL[part](self.place)]
        process = processes.spawn(argv, log=self.place.log(part), word=str(self.place.root))
        process.write(self.place.record(part))

    def _wait_for_server(self) -> None:
        self._wait("the API server", "get", "--raw", "/readyz")

    def _wait_for_node(self, images: list[Path]) -> None:
        for image in images:
            self.import_image(image)
        self.apply(dns.manifests())
        ready = "jsonpath={.status.conditions[?(@.type=='Ready')].status}"
        self._wait("the node", "get", "node", layout.NODE, "-o", ready, says="True")
        self._wait(
            "cluster DNS", "get", "deployment", "-n", dns.NAMESPACE, dns.NAME,
            "-o", "jsonpath={.status.availableReplicas}", says="1",
        )  # fmt: skip

    def import_image(self, image: Path) -> None:
        """Bring an image archive to the node."""
        socket = str(self.place.containerd_socket)
        argv = ["ctr", "-a", socket, "-n", "k8s.io", "images", "import", str(image)]
        run.until(self.place.containerd_socket.exists, what="containerd", timeout=READY_TIMEOUT_S)
        run.command(argv)

    def _wait(self, what: str, *args: str, says: str | None = None) -> None:
        """Wait until a kubectl command succeeds (and prints `says`), and no part has died."""

        def check() -> bool:
            self._all_alive()
            done = self.kubectl(*args, check=False)
            return not done.returncode and (says is None or done.stdout.strip() == says)

        run.until(check, what=f"{what} is ready", timeout=READY_TIMEOUT_S)

    def _all_alive(self) -> None:
        for part in self.parts:
            if self.place.record(part).exists() and not self.alive(part):
                raise errors.StartError(f"{part} died:\n{self._last_words(part)}")

    def _last_words(self, part: str) -> str:
        lines: list[str] = []
        with contextlib.suppress(OSError):
            lines = self.place.log(part).read_text(errors="replace").splitlines()
        return "\n".join(lines[-LOG_LINES:])


def _images() -> list[Path]:
    """The archives of the images that every node needs."""
    programs = {layout.PAUSE_IMAGE: "pause", layout.COREDNS_IMAGE: "coredns"}
    return [_image(tag, build.program(name)) for tag, name in programs.items()]


def _image(tag: str, program: Path) -> Path:
    out = layout.cache_dir() / "images" / f"{program.name}.tar"
    if not out.exists():
        out.parent.mkdir(parents=True, exist_ok=True)
        archive.write(out, tag=tag, program=program)
    return out

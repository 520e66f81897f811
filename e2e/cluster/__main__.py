"""`python -m e2e.cluster`: the cluster for people. Run it from the repository's folder."""

from __future__ import annotations

import argparse
import os
import sys
import time

from e2e.cluster import build, errors, existing, layout, parts, registry
from e2e.cluster.cluster import Cluster
from e2e.cluster.layout import Layout

DEFAULT_NAME = "default"


def main() -> int:
    arguments = _parser().parse_args()
    try:
        return int(arguments.run(arguments) or 0)
    except errors.ClusterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m e2e.cluster", description=__doc__)
    parser.add_argument("--name", default=DEFAULT_NAME, help="which cluster (default: %(default)s)")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    up = commands.add_parser("up", help="have a cluster running and ready")
    up.add_argument("--control-plane", action="store_true", help="no node: enough for CRDs")
    up.set_defaults(run=_up)
    down = commands.add_parser("down", help="end it and remove every trace of it")
    down.add_argument("--all", action="store_true", help="every cluster of this user")
    down.set_defaults(run=_down)
    commands.add_parser("status", help="say what runs").set_defaults(run=_status)
    built = commands.add_parser("build", help="build programs ahead of time")
    built.add_argument("programs", nargs="*", choices=[*build.PROGRAMS, []], metavar="PROGRAM")
    built.set_defaults(run=_build)
    for name, text, function in (
        ("kubectl", "run kubectl on it", _kubectl),
        ("exec", "run a command inside its network", _exec),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("words", nargs=argparse.REMAINDER)
        command.set_defaults(run=function)
    return parser


def _up(arguments: argparse.Namespace) -> None:
    if other := existing.Existing.named():
        other.up()
        print(f"the context {other.context} answers; nothing was started")
        return
    begun = time.monotonic()
    cluster = Cluster(arguments.name, nodes=not arguments.control_plane, keep=True)
    cluster.up()
    print(f"the cluster {cluster.name} is ready ({time.monotonic() - begun:.1f} s)")
    print(f"kubeconfig: {cluster.kubeconfig}")
    print(f"reach it with: {' '.join(cluster.netns)} COMMAND")


def _down(arguments: argparse.Namespace) -> None:
    if other := existing.Existing.named():
        print(f"{layout.CONTEXT_VARIABLE} names {other.context}; nothing was ended")
        return
    for name in list(registry.names()) if arguments.all else [arguments.name]:
        Cluster(name).down()
        print(f"the cluster {name} is gone")


def _status(arguments: argparse.Namespace) -> int:
    if other := existing.Existing.named():
        other.up()
        print(f"the context {other.context} answers")
        return 0
    found = list(registry.names())
    for name in found:
        place = Layout.of(name)
        running = [part for part in parts.ALL if registry.alive(place, part)]
        print(f"{name}: {', '.join(running) or 'nothing runs'}")
    if not found:
        print("no cluster is here")
    return 0 if arguments.name in found else 1


def _build(arguments: argparse.Namespace) -> None:
    for name in arguments.programs or ["kube", "coredns", "pause"]:
        print(build.program(name))


def _kubectl(arguments: argparse.Namespace) -> None:
    cluster = existing.Existing.named() or Cluster(arguments.name)
    _become([*cluster.command(), *arguments.words])


def _exec(arguments: argparse.Namespace) -> None:
    cluster = existing.Existing.named() or Cluster(arguments.name)
    os.environ.update(cluster.env)
    _become([*cluster.netns, *arguments.words])


def _become(argv: list[str]) -> None:
    if not argv:
        raise errors.ClusterError("say what to run")
    os.execvp(argv[0], argv)


if __name__ == "__main__":
    sys.exit(main())

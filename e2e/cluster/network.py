"""The network namespace of one cluster: a bridge with the node's address, and no way out."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

from e2e.cluster import layout, run
from e2e.cluster.layout import Layout

CLONE_NEWNET = 0x40000000


def create(place: Layout) -> None:
    run.command(["ip", "netns", "add", place.full_name])
    for words in (
        "ip link set lo up",
        "ip link add node0 type bridge",
        f"ip addr add {layout.NODE_IP}/24 dev node0",
        "ip link set node0 up",
        # Leads nowhere: the bridge has no other end. Some code wants a default route to exist.
        "ip route replace default dev node0",
        "sysctl -qw net.ipv4.ip_forward=1",
    ):
        run.command([*place.enter, *words.split()])
    # Answers between Pods on the bridge must pass iptables, or a Service's address is not undone.
    # Without the module br_netfilter the setting is not there, and there is nothing to set.
    run.succeeds([*place.enter, "sysctl", "-qw", "net.bridge.bridge-nf-call-iptables=1"])


def delete(place: Layout) -> None:
    if place.netns.exists():
        run.command(["ip", "netns", "del", place.full_name])


def pids(place: Layout) -> list[int]:
    """The processes inside the namespace."""
    if not place.netns.exists():
        return []
    return [int(p) for p in run.command(["ip", "netns", "pids", place.full_name]).split()]


@contextlib.contextmanager
def inside(netns: Path) -> Iterator[None]:
    """Let this thread, and the threads it starts meanwhile, open sockets in the namespace.

    A socket stays in the namespace it was opened in, so connections outlive the `with`.
    """
    with open("/proc/thread-self/ns/net") as before, netns.open() as wanted:
        _setns(wanted.fileno())
        try:
            yield
        finally:
            _setns(before.fileno())


def _setns(fd: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(fd, CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))

"""Where http tasks may connect to: link-local addresses are refused unless the worker allows them.

They are judged when a connection is made, after names are resolved, and the connection goes to the
very address that was judged. So neither a redirect nor a name server that changes its mind gets
around it.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import socket
from collections.abc import Iterable

import httpcore

_REFUSED = (
    ipaddress.ip_network("169.254.0.0/16"),
    ipaddress.ip_network("fe80::/10"),
    # Metadata services that are not at a link-local address.
    ipaddress.ip_network("fd00:ec2::/32"),
    ipaddress.ip_network("100.100.100.200/32"),
)
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_METADATA_NAMES = frozenset({"metadata.google.internal", "metadata.goog", "instance-data"})
"""Also refused by name: behind a proxy it is not us who resolves them."""

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
_SocketOption = (
    tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]
)


class AddressRefused(Exception):
    """A link-local or metadata address."""


class NameUnknown(httpcore.ConnectError):
    """The name of a host cannot be resolved."""


def is_refused(address: str) -> bool:
    """Whether an IP address is one that tasks must not reach."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    return any(one in network for one in (ip, *_inside(ip)) for network in _REFUSED)


def _inside(ip: IpAddress) -> Iterable[IpAddress]:
    """IPv4 addresses that an IPv6 address stands for."""
    if isinstance(ip, ipaddress.IPv4Address):
        return ()
    nat64 = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF) if ip in _NAT64 else None
    return [v4 for v4 in (ip.ipv4_mapped, ip.sixtofour, nat64) if v4 is not None]


def check_host(host: str) -> None:
    """What can be said of a host without resolving it."""
    name = host.strip("[]").rstrip(".").lower()
    try:
        refused = is_refused(name)
    except ValueError:
        refused = name in _METADATA_NAMES
    if refused:
        raise AddressRefused(host)


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """Resolves, judges, then connects."""

    def __init__(self, allow_link_local: bool) -> None:
        self._allow = allow_link_local
        self._backend = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  # the protocol's own
        local_address: str | None = None,
        socket_options: Iterable[_SocketOption] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        try:
            async with asyncio.timeout(timeout):
                addresses = await _addresses(host, port)
                if not self._allow and any(map(is_refused, addresses)):
                    raise AddressRefused(host)
                return await self._first(addresses, port, local_address, socket_options)
        except TimeoutError:
            raise httpcore.ConnectTimeout(f"no connection to {host}:{port}") from None

    async def _first(
        self,
        addresses: list[str],
        port: int,
        local_address: str | None,
        socket_options: Iterable[_SocketOption] | None,
    ) -> httpcore.AsyncNetworkStream:
        """A connection to the first address that takes one."""
        failure: httpcore.ConnectError | None = None
        for address in addresses:
            try:
                return await self._backend.connect_tcp(
                    address, port, None, local_address, socket_options
                )
            except httpcore.ConnectError as error:
                failure = failure or error
        raise failure or NameUnknown("the name has no addresses")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


async def _addresses(host: str, port: int) -> list[str]:
    try:
        return [str(ipaddress.ip_address(host))]
    except ValueError:
        pass
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        raise NameUnknown(f"the name {host} cannot be resolved: {error}") from None
    return list(dict.fromkeys(str(info[4][0]) for info in found))


def os_error(error: BaseException | None) -> OSError | None:
    """The operating system's word on a failure, from anywhere in its causes."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, OSError) and (error.errno or isinstance(error, ConnectionError)):
            return error
        if isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
            continue
        error = error.__cause__ or error.__context__
    return None


UNREACHABLE = frozenset({errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EADDRNOTAVAIL})

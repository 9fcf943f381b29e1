"""Which addresses may be connected to: globally reachable ones, by the special-purpose registries of IANA."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

Address = IPv4Address | IPv6Address


def _networks(*texts: str) -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(ip_network(text) for text in texts)


_OPENABLE = _networks(
    "10.0.0.0/8",
    "100.64.0.0/10",  # shared by the customers of a provider
    "127.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "::1/128",
    "fc00::/7",
)
"""Private ones: an operator opens them by writing a host into the setting."""

_NEVER = _networks(
    # Credentials and configuration of the machine itself, at three providers: nobody means these.
    "100.100.100.200/32",
    "168.63.129.16/32",
    "fd00:ec2::/32",
    "fd20:ce::254/128",
    "0.0.0.0/8",
    "169.254.0.0/16",  # link-local; metadata and the runtime's own services
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.31.196.0/24",
    "192.52.193.0/24",
    "192.88.99.0/24",
    "192.175.48.0/24",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/3",  # multicast and reserved
    "2001::/23",  # Teredo and the like
    "2001:db8::/32",
    "2002::/16",  # 6to4
    "2620:4f:8000::/48",
    "3fff::/20",
)
_GLOBAL_V6 = IPv6Network("2000::/3")
"""All other IPv6 is something else: link-local, multicast, IPv4 that is mapped or translated."""
_ISATAP = (0x00005EFE, 0x02005EFE)


def refusal_of(address: Address, *, opened: bool) -> str | None:
    """Why nothing may be asked of an address, None when it may be. `opened`: an operator named its host."""
    if any(address in network for network in _NEVER):
        return "the host has a reserved address"
    if any(address in network for network in _OPENABLE):
        return None if opened else "the host has a private address"
    if address.version == 6 and (address not in _GLOBAL_V6 or int(address) >> 32 & 0xFFFFFFFF in _ISATAP):
        return "the host has a reserved address"
    return None

"""Which proxy the environment asks for, by the rules that kubectl follows (HTTPS_PROXY, NO_PROXY)."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit


def proxy_from_environment(server: str, environ: Mapping[str, str]) -> str | None:
    """The proxy's URL, or None where there is none or NO_PROXY covers the server.

    Upper or lower case; loopback is never proxied; NO_PROXY lists hosts, domain suffixes, addresses, networks
    in CIDR notation, each with an optional port, or `*`.
    """
    address = urlsplit(server)
    scheme = "HTTPS" if address.scheme == "https" else "HTTP"
    url = environ.get(f"{scheme}_PROXY") or environ.get(f"{scheme.lower()}_proxy")
    host = (address.hostname or "").lower()
    if not url or _is_loopback(host):
        return None
    port = address.port or (443 if address.scheme == "https" else 80)
    exceptions = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    if any(_covers(entry.strip().lower(), host, port) for entry in exceptions.split(",")):
        return None
    return url if "://" in url else f"http://{url}"


def _covers(entry: str, host: str, port: int) -> bool:
    if not entry:
        return False
    if entry == "*":
        return True
    address = _address(host)
    if "/" in entry:
        try:
            network = ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
        return address is not None and address in network
    name, wanted_port = _split_port(entry)
    if wanted_port is not None and wanted_port != port:
        return False
    if address is not None:
        return _address(name) == address
    # ".example.com" and "*.example.com" cover subdomains, "example.com" covers itself and subdomains.
    suffix = name.removeprefix("*")
    return host.endswith(suffix) if suffix.startswith(".") else host == name or host.endswith(f".{name}")


def _split_port(entry: str) -> tuple[str, int | None]:
    if entry.startswith("["):
        name, _, rest = entry[1:].partition("]")
        return name, int(rest[1:]) if rest[1:].isdigit() else None
    name, colon, port = entry.rpartition(":")
    if colon and port.isdigit() and ":" not in name:
        return name, int(port)
    return entry, None


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _is_loopback(host: str) -> bool:
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)

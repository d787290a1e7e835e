"""Whose log it is, where its lines say so: syslog and journals write the host before the program."""

from __future__ import annotations

import re

_LINE = re.compile(
    rb"(?m)^(?:[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\S{8,24}) (?P<host>[A-Za-z0-9][\w.-]*) "
    rb"(?:kernel|kubelet|containerd|dockerd|crio|systemd|slurmd|nv-fabricmanager|nvidia-[\w-]+)(?:\[\d+\])?: "
)
_NOBODYS = {"localhost", "host"}


def host_of(head: bytes) -> str:
    """The one host that a log's first lines name; "" where they name none, or several."""
    hosts = {found["host"].decode() for found in _LINE.finditer(head)}
    return hosts.pop() if len(hosts) == 1 and not hosts & _NOBODYS else ""

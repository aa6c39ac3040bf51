"""The runs of several processes that are going on on this host, as their hubs describe them: for `tilestack doctor`."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .messages import ASK, receive, send

SOCKETS = Path("/proc/net/unix")
PREFIX = "@tilestack-"  # how the system shows the name of a hub's socket
_PATIENCE_S = 2.0


@dataclass(frozen=True)
class Run:
    """`members`: the processes, in words. `waiting`: who waits where, and for how long, in words; empty if nobody does.
    `lost`: what has become of a rank that is lost. `counts`: how often blocks of rank 0 have met those of others."""

    members: tuple[str, ...]
    waiting: str
    waits_s: float
    lost: str
    counts: str


def runs() -> list[Run]:
    """Those of this user. A hub that does not answer is left out: it belongs to another user, or has just ended."""
    try:
        lines = SOCKETS.read_text().splitlines()
    except OSError:
        return []
    names = sorted({line.split()[-1] for line in lines if line.split()[-1].startswith(PREFIX)})
    found = (_ask("\0" + name[1:]) for name in names)
    return [run for run in found if run is not None]


def _ask(address: str) -> Run | None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as made:
        made.settimeout(_PATIENCE_S)
        try:
            made.connect(address)
            send(made, {ASK: True})
            reply = receive(made)
        except OSError:
            return None
    if reply is None:
        return None
    row: dict[str, Any] = reply.row
    return Run(tuple(row["members"]), row["waiting"], row["waits_s"], row["lost"], row["counts"])

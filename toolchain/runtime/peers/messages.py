"""The messages between ranks: a JSON object, perhaps with file descriptors, in one packet of a local socket."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

END = "end"  # the key of a message after which the sender closes its socket
ASK = "ask"  # the key of a message that asks a hub how its run is going
_LARGEST = 1 << 16  # bytes of a message
_MOST_DESCRIPTORS = 64


@dataclass(frozen=True)
class Message:
    row: dict[str, Any]
    descriptors: Sequence[int] = ()


def send(to: socket.socket, row: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
    """Raises OSError if the other side is gone."""
    socket.send_fds(to, [json.dumps(row).encode()], list(descriptors))


def receive(source: socket.socket) -> Message | None:
    """The next message; None if the other side has closed its socket. Raises OSError."""
    data, descriptors, _, _ = socket.recv_fds(source, _LARGEST, _MOST_DESCRIPTORS)
    return Message(json.loads(data), descriptors) if data else None

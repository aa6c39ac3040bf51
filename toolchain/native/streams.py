"""The standard streams of a container that is about to start, joined to those of this process."""

from __future__ import annotations

import os
import socket
import sys
import threading
from typing import Any

STDIN, STDERR = 0, 2
CHUNK = 1 << 16


class Streams:
    """A connection to a container's standard streams: made before it starts, so that nothing of its output is lost."""

    def __init__(self, container: Any) -> None:
        wanted = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        self._connection = container.client.api.attach_socket(container.id, params=wanted)
        # The package gives the file object of the connection; sending, and ending what is sent, are the socket's.
        self._socket: socket.socket = getattr(self._connection, "_sock", self._connection)

    def copy(self) -> None:
        """Copy to and fro until the container's output ends. Raises BrokenPipeError if nobody reads ours."""
        from docker.utils.socket import frames_iter

        # A daemon: a tool that reads no input ends while ours may still wait for a terminal.
        threading.Thread(target=self._feed, daemon=True).start()
        for stream, data in frames_iter(self._connection, tty=False):
            output = sys.stderr.buffer if stream == STDERR else sys.stdout.buffer
            output.write(data)
            output.flush()

    def _feed(self) -> None:
        try:
            while data := os.read(STDIN, CHUNK):
                self._socket.sendall(data)
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:  # the tool ended without reading all of it, or we have no standard input
            pass

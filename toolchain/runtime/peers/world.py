"""Several processes of one host that run one model, a rank each: they meet, compare what they have, and pass on memory.

All talk to a hub (see hub.py), which rank 0 runs, over a socket of this host. There is one kind of message: every rank
comes to the same point with a value and perhaps a file descriptor, and each gets those of all. A rank that ends, fails,
comes to another point or does not come at all is named to all others.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import mmap
import os
import queue
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import DeviceError, UsageError
from .hub import Hub
from .messages import END, Message, receive, send

LOADING_S = 600.0  # the most that a rank waits for one that compiles kernels or reads weights
STEP_S = 20.0  # the same for one that runs
CONNECT_S = 60.0
GRACE_S = 15.0  # that a process has to end by itself, once a rank is lost
_SLACK_S = 5.0  # more than the hub waits, so that its answer comes first


@dataclass(frozen=True)
class Place:
    """Which rank a process is, as torchrun's variables say. `local`: the number of its GPU. `meeting`: what the ranks
    of one run have in common, and those of another one have not."""

    rank: int
    ranks: int
    local: int
    meeting: str

    def __post_init__(self) -> None:
        """Raises UsageError for numbers that make no sense."""
        if not 0 <= self.rank < self.ranks:
            raise UsageError(f"rank {self.rank} of {self.ranks}: ranks count from 0")
        if self.local != self.rank:
            raise UsageError(
                f"rank {self.rank} is number {self.local} on its host: all ranks must be on one host",
                hint="GPUs of several hosts are not supported: start one process for each GPU of one host",
            )

    @property
    def address(self) -> str:
        """Of the hub's socket: an abstract one, which is gone with its process."""
        digest = hashlib.sha256(f"{os.getuid()} {self.meeting}".encode()).hexdigest()
        return f"\0tilestack-{digest[:32]}"


end_process = os._exit  # at once: what waits in the driver cannot be unwound


class World:
    """The processes of one run, seen from one of them. Once a rank is lost, a process that has not closed this after
    GRACE_S is ended: so all end soon, whatever they wait for."""

    def __init__(self, place: Place, device: str) -> None:
        """Connects with the hub. `device`: the name of this rank's GPU, for errors. Raises DeviceError if the ranks do
        not come together."""
        self.rank, self.ranks = place.rank, place.ranks
        self._replies: queue.Queue[Message | None] = queue.Queue()
        self._failure = ""
        self._closing = threading.Event()
        self._hub = Hub(place.address, place.ranks) if place.rank == 0 else None
        self._socket = _connect(place)
        process, _, _ = struct.unpack("3i", self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        self._first = f"rank 0 (process {process})"
        threading.Thread(target=self._listen, name="peers", daemon=True).start()
        try:
            send(self._socket, {"rank": self.rank, "who": f"rank {self.rank} (process {os.getpid()}, {device})"})
            self.meet(f"the beginning of {self.ranks} ranks", limit_s=CONNECT_S)
        except BaseException:
            self.close()
            raise

    def meet(self, point: str, value: str = "", descriptor: int | None = None, *, limit_s: float) -> Message:
        """Waits until all ranks have come to a point of this name: their values, and copies of their descriptors.
        Raises DeviceError that names the rank which has ended, failed, or not come within `limit_s` seconds, and
        UsageError where ranks come to different points."""
        self.check()
        given = [] if descriptor is None else [descriptor]
        with contextlib.suppress(ConnectionError):  # the hub is gone: what it said last may still be on its way to us
            send(self._socket, {"point": point, "value": value, "limit_s": limit_s}, given)
        try:
            reply = self._replies.get(timeout=limit_s + _SLACK_S)
        except queue.Empty:
            self._fail(f"{self._first} has not answered for {limit_s + _SLACK_S:g} s: it hangs")
            reply = None
        if reply is None:
            self.check()
        assert reply is not None  # None comes only with a failure
        if refused := reply.row.get("differ"):
            raise UsageError(refused, hint="all ranks must run the same program, with the same arguments")
        return reply

    def agree(self, what: str, value: str) -> None:
        """Raises UsageError, on every rank, unless all have the same value. `what`: in words."""
        values: Sequence[str] = self.meet(f"comparing {what}", value, limit_s=LOADING_S).row["values"]
        odd = [rank for rank, one in enumerate(values) if one != values[0]]
        if odd:
            others = ", ".join(f"rank {rank} {values[rank][:60]}" for rank in odd)
            raise UsageError(
                f"the ranks differ in {what}: rank 0 has {values[0][:60]}, {others}",
                hint="start all ranks with the same files, packages and arguments",
            )

    def exchange(self, what: str, array: NDArray[Any], limit_s: float = STEP_S) -> list[NDArray[Any]]:
        """The arrays of all ranks, of the same dtype."""
        own = os.memfd_create(what)
        try:
            os.truncate(own, max(array.nbytes, 1))
            with mmap.mmap(own, max(array.nbytes, 1)) as memory:
                memory[: array.nbytes] = array.tobytes()
            reply = self.meet(what, json.dumps(array.shape), own, limit_s=limit_s)
        finally:
            os.close(own)
        found: list[NDArray[Any]] = []
        for value, descriptor in zip(reply.row["values"], reply.descriptors, strict=True):
            shape = tuple(json.loads(value))
            with mmap.mmap(descriptor, 0, prot=mmap.PROT_READ) as memory:
                data = memory[: math.prod(shape) * array.itemsize]
            os.close(descriptor)
            found.append(np.frombuffer(data, array.dtype).reshape(shape))
        return found

    def barrier(self, what: str, limit_s: float = STEP_S) -> None:
        """Waits for all ranks."""
        self.meet(what, limit_s=limit_s)

    def check(self) -> None:
        """Raises DeviceError that names a rank which has ended or failed."""
        if self._failure:
            raise DeviceError(self._failure, hint="see what that rank has said; docs/several-gpus.md")

    def fail(self, error: BaseException) -> None:
        """Tells the other ranks that this one ends with an error."""
        if not self._failure and not self._closing.is_set():
            said = f"{type(error).__name__}: {error.args[0] if error.args else error}"
            self._say({"failed": said})

    def describe_counts(self, counts: Callable[[], str]) -> None:
        """What says, from another thread and while kernels run, how often blocks have met: see Channel.counts."""
        if self._hub is not None:
            self._hub.counts = counts

    def close(self) -> None:
        """Takes leave of the others. A second call does nothing."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._say({END: True})
        if self._hub is not None:
            self._hub.join()  # the others may still need it
        self._socket.close()

    def _say(self, row: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # nobody is left to hear it
            send(self._socket, row)

    def _listen(self) -> None:
        """Passes on replies, and notes a failure as soon as it is known."""
        while True:
            try:
                message = receive(self._socket)
            except OSError:
                message = None
            if message is None:
                self._fail(f"{self._first} has ended")
                return
            if said := message.row.get("lost"):
                self._fail(said)
                return
            self._replies.put(message)

    def _fail(self, said: str) -> None:
        if not self._failure and not self._closing.is_set():
            self._failure = said
            threading.Thread(target=self._end, name="end", daemon=True).start()
        self._replies.put(None)

    def _end(self) -> None:
        """Ends this process if it does not notice that a rank is lost: it sleeps, or waits in the driver."""
        if not self._closing.wait(GRACE_S):
            print(f"error: {self._failure}; rank {self.rank} has not noticed it for {GRACE_S:g} s", file=sys.stderr)
            end_process(DeviceError.exit_code)


def _connect(place: Place) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    until = time.monotonic() + CONNECT_S
    while True:
        try:
            made.connect(place.address)
        except (ConnectionRefusedError, FileNotFoundError) as error:
            if time.monotonic() > until:
                made.close()
                raise DeviceError(
                    f"rank {place.rank} finds no rank 0 on this host after {CONNECT_S:g} s",
                    hint="start all ranks on one host, with the same MASTER_ADDR and MASTER_PORT",
                ) from error
            time.sleep(0.05)
        else:
            return made

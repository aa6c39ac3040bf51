"""The hub of several processes: a thread of rank 0 that lets all ranks meet, and tells them of one that is lost."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ...errors import DeviceError
from .messages import ASK, END, Message, receive, send

_TICK_S = 0.2  # between two looks at who is late
_LEAVE_S, _LEAVE_LOST_S = 10.0, 1.0  # that rank 0 waits for the others at its end, and after a failure


@dataclass
class _Member:
    """A connected process. `who`: for people. `came`: the meeting that it waits in."""

    socket: socket.socket
    rank: int = -1
    who: str = "a process that has not said which rank it is"
    came: Message | None = None


@dataclass
class _Meeting:
    since: float = 0.0
    limit_s: float = 0.0
    members: dict[int, _Member] = field(default_factory=dict[int, _Member])


class Hub:
    """Listens from the moment that it is made. `counts`: says how often blocks of rank 0 have met the others', for who
    asks how the run is going."""

    def __init__(self, address: str, ranks: int) -> None:
        self._ranks = ranks
        self.counts: Callable[[], str] = str
        self._known: dict[int, _Member] = {}
        self._meeting = _Meeting()
        self._lost = ""
        self._left: set[int] = set()
        self._selector = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._listener.bind(address)
        except OSError as error:
            self._listener.close()
            raise DeviceError(
                "another rank 0 of this run is there already", hint="give each run a MASTER_PORT of its own"
            ) from error
        self._listener.listen(ranks)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, name="hub", daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Waits until the other ranks have taken leave, but not for long."""
        self._thread.join(_LEAVE_LOST_S if self._lost else _LEAVE_S)

    def _run(self) -> None:
        while len(self._left) < (len(self._known) if self._lost else self._ranks):
            for key, _ in self._selector.select(_TICK_S):
                if key.fileobj is self._listener:
                    self._welcome()
                else:
                    self._hear(key.data)
            self._look_for_late()
        self._selector.close()
        self._listener.close()

    def _welcome(self) -> None:
        made, _ = self._listener.accept()
        _, uid, _ = struct.unpack("3i", made.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        if uid != os.getuid():  # an abstract socket is open to every user
            made.close()
            return
        self._selector.register(made, selectors.EVENT_READ, _Member(made))

    def _hear(self, member: _Member) -> None:
        try:
            message = receive(member.socket)
        except OSError:
            message = None
        if message is None or END in message.row:
            self._part_with(member, said_so=message is not None)
        elif ASK in message.row:
            self._send(member, self._describe(), [])
        elif "rank" in message.row:
            self._introduce(member, message)
        elif "failed" in message.row:
            self._lose(f"{member.who} has failed: {message.row['failed']}", but=member)
        else:
            self._come(member, message)

    def _introduce(self, member: _Member, message: Message) -> None:
        rank, member.who = message.row["rank"], message.row["who"]
        if rank in self._known:
            self._lose(f"{member.who} and {self._known[rank].who} are the same rank", but=None)
        else:
            member.rank, self._known[rank] = rank, member
        if self._lost:
            self._tell_lost(member)

    def _part_with(self, member: _Member, *, said_so: bool) -> None:
        self._selector.unregister(member.socket)
        member.socket.close()
        if member.rank < 0:
            return
        self._left.add(member.rank)
        if not said_so:
            self._lose(f"{member.who} has ended unexpectedly", but=member)
        elif self._meeting.members:
            self._lose(f"{member.who} has ended, the others have not", but=member)

    def _come(self, member: _Member, message: Message) -> None:
        if self._lost:
            return  # it has been told
        if self._left:
            gone = min(self._left)
            self._lose(f"{self._known[gone].who} has ended, the others have not", but=self._known[gone])
            return
        meeting = self._meeting
        if not meeting.members:
            meeting.since = time.monotonic()
        member.came = message
        meeting.members[member.rank] = member
        meeting.limit_s = message.row["limit_s"]
        if len(meeting.members) == self._ranks:
            self._answer(meeting)

    def _answer(self, meeting: _Meeting) -> None:
        self._meeting = _Meeting()
        members = [meeting.members[rank] for rank in range(self._ranks)]
        came = [member.came for member in members if member.came is not None]
        points = [message.row["point"] for message in came]
        row: dict[str, object] = {"values": [message.row["value"] for message in came]}
        if len(set(points)) > 1:
            each = "; ".join(f"{member.who} is at: {at}" for member, at in zip(members, points, strict=True))
            row = {"differ": f"the ranks do not do the same: {each}"}
        descriptors = [each for message in came for each in message.descriptors]
        for member in members:
            self._send(member, row, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)

    def _describe(self) -> dict[str, object]:
        """See runs.Run."""
        meeting = self._meeting
        each = [f"{one.who}: {one.came.row['point']}" for one in meeting.members.values() if one.came is not None]
        waits_s = time.monotonic() - meeting.since if each else 0.0
        members = [self._known[rank].who for rank in sorted(self._known)]
        try:
            counts = self.counts()
        except DeviceError as error:
            counts = str(error.args[0])
        return {
            "members": members, "waiting": "; ".join(each), "waits_s": waits_s, "lost": self._lost, "counts": counts,
        }  # fmt: skip

    def _look_for_late(self) -> None:
        meeting = self._meeting
        if not meeting.members or self._lost or time.monotonic() - meeting.since < meeting.limit_s:
            return
        late = [rank for rank in range(self._ranks) if rank not in meeting.members]
        names = ", ".join(self._known[rank].who if rank in self._known else f"rank {rank}" for rank in late)
        waiting = next(iter(meeting.members.values()))
        assert waiting.came is not None
        self._lose(
            f"{names} has not come within {meeting.limit_s:g} s, {waiting.who} waits at: {waiting.came.row['point']}",
            but=None,
        )

    def _lose(self, said: str, but: _Member | None) -> None:
        """Tells all ranks of a failure, the first one only."""
        if self._lost:
            return
        self._lost = said
        self._meeting = _Meeting()
        for rank, member in self._known.items():
            if member is not but and rank not in self._left:
                self._tell_lost(member)

    def _tell_lost(self, member: _Member) -> None:
        self._send(member, {"lost": self._lost}, [])

    def _send(self, member: _Member, row: dict[str, object], descriptors: list[int]) -> None:
        with contextlib.suppress(OSError):  # it is gone, which its socket says next
            send(member.socket, row, descriptors)

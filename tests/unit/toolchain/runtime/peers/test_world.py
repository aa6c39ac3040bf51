"""Ranks that are processes, here threads: they meet, compare, pass on descriptors, and name the one that is lost."""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from toolchain.errors import DeviceError, TilestackError, UsageError
from toolchain.runtime.peers import world as module
from toolchain.runtime.peers.messages import Message, receive, send
from toolchain.runtime.peers.runs import runs
from toolchain.runtime.peers.world import Place, World

Rank = Callable[[World], object]


def run(*ranks: Rank, meeting: str | None = None) -> list[object]:
    """What each rank returns, or the error that it raises."""
    name = meeting or secrets.token_hex(8)

    def one(rank: int) -> object:
        try:
            world = World(Place(rank, len(ranks), rank, name), "cpu")
            try:
                return ranks[rank](world)
            except BaseException as error:
                world.fail(error)
                raise
            finally:
                world.close()
        except (TilestackError, RuntimeError) as error:
            return error

    with ThreadPoolExecutor(len(ranks)) as pool:
        return list(pool.map(one, range(len(ranks))))


def said(found: Sequence[object]) -> list[str]:
    return [f"{type(one).__name__}: {one.args[0]}" if isinstance(one, Exception) else str(one) for one in found]


def meets(world: World) -> object:
    return world.meet("a point", f"value {world.rank}", limit_s=60).row["values"]


def test_each_rank_gets_the_values_of_all() -> None:
    assert run(meets, meets, meets) == [["value 0", "value 1", "value 2"]] * 3


def test_descriptors_go_to_all() -> None:
    def share(world: World) -> object:
        end, start = os.pipe()
        os.write(start, b"from %d" % world.rank)
        os.close(start)
        reply = world.meet("pipes", descriptor=end, limit_s=60)
        world.barrier("read")
        found = b"|".join(os.read(each, 6) for each in reply.descriptors if world.rank == 1)
        for each in (*reply.descriptors, end):
            os.close(each)
        return found

    assert run(share, share) == [b"", b"from 0|from 1"]


def test_another_version_is_named_on_every_rank() -> None:
    def has(value: str) -> Rank:
        return lambda world: world.agree("the bundle", value)

    text = "UsageError: the ranks differ in the bundle: rank 0 has a1, rank 2 b2"
    assert said(run(has("a1"), has("a1"), has("b2"))) == [text] * 3


def test_ranks_at_different_points() -> None:
    found = said(run(lambda world: world.barrier("a prompt"), lambda world: world.barrier("a step")))
    assert found[0] == found[1]
    assert f"rank 0 (process {os.getpid()}, cpu) is at: a prompt; rank 1" in found[0]


def test_a_rank_that_fails_is_named_with_its_error() -> None:
    def fails(_: World) -> object:
        raise RuntimeError("out of luck")

    first, second, third = said(run(meets, fails, meets))
    assert second == "RuntimeError: out of luck"
    assert first == third == f"DeviceError: rank 1 (process {os.getpid()}, cpu) has failed: RuntimeError: out of luck"


def test_a_rank_that_ends_without_a_word() -> None:
    def dies(world: World) -> object:
        world._socket.shutdown(2)  # pyright: ignore[reportPrivateUsage] - as the system does when a process dies
        return "dead"

    first, _, third = said(run(meets, dies, meets))
    assert first == third == f"DeviceError: rank 1 (process {os.getpid()}, cpu) has ended unexpectedly"


def test_a_rank_that_ends_before_the_others() -> None:
    first, *_ = said(run(meets, lambda _: "done"))
    assert first == f"DeviceError: rank 1 (process {os.getpid()}, cpu) has ended, the others have not"


def test_a_rank_that_hangs_is_named_in_time() -> None:
    over = threading.Event()

    def waits(world: World) -> object:
        try:
            world.barrier("a step", limit_s=0.3)
        finally:
            over.set()

    def hangs(world: World) -> object:
        assert over.wait(60)
        return world.barrier("a step")  # comes late: it may or may not have heard of its loss yet

    first, second = said(run(waits, hangs))
    assert first == second
    assert f"rank 1 (process {os.getpid()}, cpu) has not come within 0.3 s, rank 0" in first
    assert first.endswith("waits at: a step")


def test_a_rank_that_does_not_notice_is_ended(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    codes: list[int] = []
    ended = threading.Event()

    def exit_(code: int) -> None:
        codes.append(code)
        ended.set()

    def fails(_: World) -> object:
        raise RuntimeError("no more")

    monkeypatch.setattr(module, "GRACE_S", 0.1)
    monkeypatch.setattr(module, "end_process", exit_)
    run(fails, lambda _: ended.wait(60))
    assert codes == [7]
    assert "has failed: RuntimeError: no more" in capsys.readouterr().err


def test_a_rank_that_comes_when_the_hub_is_gone_says_what_the_hub_said_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its other thread, which listens, has not come to read that yet."""
    place, refused = Place(1, 2, 1, secrets.token_hex(8)), threading.Event()

    def hub(listener: socket.socket) -> None:
        with listener, listener.accept()[0] as rank:
            assert receive(rank) and receive(rank)  # who it is, and that it has come to the beginning
            send(rank, {"values": ["", ""]})
            send(rank, {"lost": "rank 0 has failed"})

    def receive_late(source: socket.socket) -> Message | None:
        message = receive(source)
        assert message is None or "lost" not in message.row or refused.wait(60)
        return message

    def send_and_say(*what: Any) -> None:
        try:
            send(*what)
        except OSError:
            refused.set()
            raise

    monkeypatch.setattr(module, "receive", receive_late)
    monkeypatch.setattr(module, "send", send_and_say)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(place.address)
    listener.listen()
    thread = threading.Thread(target=hub, args=(listener,))
    thread.start()
    world = World(place, "cpu")
    thread.join()
    with pytest.raises(DeviceError, match="rank 0 has failed"):
        world.barrier("a step")
    assert refused.is_set()
    world.close()


def test_a_second_rank_0() -> None:
    meeting = secrets.token_hex(8)

    def again(world: World) -> object:
        with pytest.raises(DeviceError, match="another rank 0 of this run"):
            World(Place(0, 2, 0, meeting), "cpu")
        return world.barrier("over")

    assert run(again, lambda world: world.barrier("over"), meeting=meeting) == [None, None]


def test_a_rank_that_is_there_twice() -> None:
    meeting = secrets.token_hex(8)

    def twice(world: World) -> object:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as impostor:
            impostor.connect(Place(1, 2, 1, meeting).address)
            send(impostor, {"rank": 0, "who": "an impostor"})
            told = receive(impostor)
        assert told is not None
        assert "an impostor and rank 0" in told.row["lost"]
        return meets(world)

    found = said(run(meets, twice, meeting=meeting))
    assert all("are the same rank" in one for one in found)


@pytest.mark.parametrize(
    ("numbers", "says"), [((2, 2, 2), "rank 2 of 2"), ((1, 4, 0), "rank 1 is number 0 on its host")]
)
def test_places_that_are_none(numbers: tuple[int, int, int], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Place(*numbers, meeting="")


def test_how_a_run_is_going() -> None:
    counts = f"block 0 came 7 times, {secrets.token_hex(8)}"  # other runs of this host are seen too
    asked = threading.Event()

    def asks(world: World) -> object:
        world.describe_counts(lambda: counts)
        wanted = f"rank 1 (process {os.getpid()}, cpu): a step"
        until = time.monotonic() + 60
        while not (going := [each for each in runs() if each.counts == counts]) or going[0].waiting != wanted:
            assert time.monotonic() < until
            time.sleep(0.02)
        assert (len(going), len(going[0].members), going[0].lost) == (1, 2, "")
        asked.set()
        return world.barrier("a step", limit_s=60)

    assert run(asks, lambda world: world.barrier("a step", limit_s=60)) == [None, None]
    assert asked.is_set()


def test_runs_do_not_meet() -> None:
    assert Place(0, 2, 0, "29500").address != Place(0, 2, 0, "29501").address

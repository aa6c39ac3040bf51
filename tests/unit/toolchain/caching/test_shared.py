from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from toolchain import knobs
from toolchain.caching.cache import Cache, key
from toolchain.caching.shared import GIVE_UP, MARKER, Shared, new_keys
from toolchain.errors import UsageError

NAME = key("x")
PAIR = new_keys()
OTHER = new_keys()


@pytest.fixture(autouse=True)
def _nothing_is_kept() -> Iterator[None]:
    yield
    MemoryFileSystem.store.clear()


@pytest.fixture(params=["memory", "file"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory://shared/cache" if request.param == "memory" else f"file://{tmp_path}/shared/cache"


def writer(url: str, folder: Path) -> Cache:
    return Cache(folder, Shared.open(url, [], PAIR[0]))


def reader(url: str, folder: Path, *public: str) -> Cache:
    return Cache(folder, Shared.open(url, public or [PAIR[1]], None))


def make(cache: Cache, content: bytes = b"made") -> bytes:
    return cache.get_or_make(NAME, lambda: content)


def change(shared: Shared, at: int, to: bytes | None = None) -> None:
    """Flips a bit of the object of NAME, or cuts it off."""
    path = f"{shared.root}/{NAME[:2]}/{NAME[2:]}"
    raw = bytearray(shared.files.cat_file(path))
    raw[at] ^= 1
    shared.files.pipe_file(path, bytes(raw) if to is None else bytes(raw[:at]))


def test_what_one_machine_made_another_reads(url: str, tmp_path: Path) -> None:
    first, second = writer(url, tmp_path / "a"), reader(url, tmp_path / "b")
    first.put(NAME, b"made", 2.5)
    first.share(NAME, b"made", 2.5)
    assert second.get(NAME) == b"made"
    counts = second.counts
    assert (counts.shared_hits, counts.hits, counts.misses, counts.saved) == (1, 0, 0, 2.5)
    assert counts.received == first.counts.sent > counts.written == first.counts.written > 0
    again = Cache(tmp_path / "b")
    assert again.get(NAME) == b"made" and again.counts.saved == 2.5  # it was copied to the folder, with its cost


def test_a_reader_writes_nothing(url: str, tmp_path: Path) -> None:
    writer(url, tmp_path / "a")
    assert make(reader(url, tmp_path / "b")) == b"made"
    assert reader(url, tmp_path / "c").get(NAME) is None


@pytest.mark.parametrize("at", [0, 63, 64, 80, 112, 119, 120, -1])
def test_a_damaged_object_is_made_again_and_replaced(at: int, tmp_path: Path) -> None:
    url = "memory://shared"
    first, second = writer(url, tmp_path / "a"), writer(url, tmp_path / "b")
    make(first, b"content")
    assert first.shared
    change(first.shared, at)
    assert make(second, b"again") == b"again"
    assert (second.counts.damaged, second.counts.refused, second.counts.misses) == (
        int(at >= 64 or at < 0),
        int(0 <= at < 64),
        1,
    )
    assert reader(url, tmp_path / "c").get(NAME) == b"again"


@pytest.mark.parametrize("length", [0, 10, 64, 100, 125])
def test_a_part_of_an_object_is_not_used(length: int, tmp_path: Path) -> None:
    first = writer("memory://shared", tmp_path / "a")
    make(first, b"content")
    assert first.shared
    change(first.shared, length, b"cut")
    second = reader("memory://shared", tmp_path / "b")
    assert second.get(NAME) is None
    assert second.counts.damaged == 1


def test_an_entry_of_somebody_else_is_refused(url: str, tmp_path: Path) -> None:
    intruder = Cache(tmp_path / "a", Shared.open(url, [], OTHER[0]))
    make(intruder, b"evil")
    mine = writer(url, tmp_path / "b")
    assert mine.get(NAME) is None
    assert (mine.counts.refused, mine.counts.misses) == (1, 1)
    assert "no trusted key has signed" in mine.counts.trouble
    assert make(mine, b"good") == b"good"
    assert reader(url, tmp_path / "c").get(NAME) == b"good"
    assert reader(url, tmp_path / "d", OTHER[1], PAIR[1]).get(NAME) == b"good"  # keys may be exchanged for new ones


def test_a_signed_entry_under_another_key_is_not_used(tmp_path: Path) -> None:
    first = writer("memory://shared", tmp_path / "a")
    make(first)
    assert first.shared
    other = key("y")
    shared = first.shared
    shared.files.pipe_file(
        f"{shared.root}/{other[:2]}/{other[2:]}", shared.files.cat_file(f"{shared.root}/{NAME[:2]}/{NAME[2:]}")
    )
    second = reader("memory://shared", tmp_path / "b")
    assert second.get(other) is None
    assert second.counts.damaged == 1


def _write_often(url: str, signing: str, content: bytes) -> None:
    shared = Shared.open(url, [], signing)
    for _ in range(50):
        shared.put(NAME, content, 1.0)


def test_a_reader_beside_two_writing_processes_sees_whole_entries(tmp_path: Path) -> None:
    url = f"file://{tmp_path}/shared"
    contents = (b"1" * 50_000, b"2" * 70_000)
    _write_often(url, PAIR[0], contents[0])
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write_often, args=(url, PAIR[0], content)) for content in contents]
    for each in writers:
        each.start()
    shared = Shared.open(url, [PAIR[1]], None)
    read: list[bytes] = []
    while any(each.is_alive() for each in writers):
        found = shared.get(NAME)
        assert found
        read.append(found[0].content)
    for each in writers:
        each.join()
        assert each.exitcode == 0
    assert set(read) <= set(contents) and read


@pytest.mark.parametrize("wrong", [OSError("connection lost"), TimeoutError(), RuntimeError("of the store's own")])
def test_a_lost_network_is_counted_and_soon_left_alone(
    wrong: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = writer("memory://shared", tmp_path / "a")
    asked: list[object] = []

    def lost(*arguments: object, **_: object) -> None:
        asked.append(arguments)
        raise wrong

    for name in ("cat_file", "pipe_file"):
        monkeypatch.setattr(MemoryFileSystem, name, lost)
    for number in range(20):
        assert cache.get_or_make(key(str(number)), lambda: b"made") == b"made"
    assert len(asked) == cache.counts.errors == GIVE_UP
    assert type(wrong).__name__ in cache.counts.trouble
    assert cache.counts.misses == 20


def test_a_network_that_fails_at_the_start_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: object, **__: object) -> None:
        raise ConnectionError("no route")

    monkeypatch.setattr(MemoryFileSystem, "pipe_file", lost)
    monkeypatch.setenv("TILESTACK_CACHE_URL", "memory://shared")
    monkeypatch.setenv("TILESTACK_CACHE_SIGNING_KEY", PAIR[0])
    monkeypatch.setenv("TILESTACK_CACHE_DIR", str(tmp_path))
    cache = Cache.configured()
    assert cache.counts.errors == 1 and "no route" in cache.counts.trouble
    assert make(cache) == b"made"


class NoCredentialsError(Exception):
    """As botocore names it."""


@pytest.mark.parametrize("wrong", [PermissionError("Forbidden"), NoCredentialsError()])
@pytest.mark.parametrize("signing", [None, PAIR[0]], ids=["reader", "writer"])
def test_a_store_that_refuses_us_is_an_error(
    wrong: Exception, signing: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise wrong

    for name in ("cat_file", "pipe_file"):
        monkeypatch.setattr(MemoryFileSystem, name, refuse)
    with pytest.raises(UsageError, match=r"we may not (read|write to)"):
        Shared.open("memory://shared", [PAIR[1]], signing)


def test_a_cache_that_nobody_has_written_is_said_and_left_alone(tmp_path: Path) -> None:
    cache = reader("memory://shared", tmp_path)
    assert cache.shared and "no cache is there yet" in cache.shared.trouble
    assert make(cache) == b"made" and cache.counts.errors == 0


@pytest.mark.parametrize(
    ("url", "public", "signing", "match"),
    [
        ("memory://x", [], None, "no key says whose entries to trust"),
        ("memory://x", ["%%"], None, "TILESTACK_CACHE_PUBLIC_KEY is not the base64"),
        ("memory://x", [], "c2hvcnQ=", "TILESTACK_CACHE_SIGNING_KEY is not the base64"),
        ("memory://x", [OTHER[1]], PAIR[0], "does not belong to"),
        ("http://x/y", [PAIR[1]], None, "begin it with"),
        ("/a/folder", [PAIR[1]], None, "begin it with"),
        ("none://x", [PAIR[1]], None, "begin it with"),
        ("gs://x", [PAIR[1]], None, "gcsfs"),
    ],
    ids=["no key", "public", "signing", "pair", "http", "folder", "unknown", "gs"],  # keys are new in each process
)
def test_wrong_settings_are_errors(url: str, public: list[str], signing: str | None, match: str) -> None:
    with pytest.raises(UsageError, match=match) as raised:
        Shared.open(url, public, signing)
    assert signing is None or signing not in str(raised.value)


def test_the_objects_are_listed_without_the_marker(url: str, tmp_path: Path) -> None:
    cache = writer(url, tmp_path / "a")
    make(cache)
    assert cache.shared and list(cache.shared.names()) == [NAME]
    assert cache.shared.files.exists(f"{cache.shared.root}/{MARKER}")


def test_without_the_setting_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(knobs.CACHE_URL.name, raising=False)
    assert Shared.configured() is None

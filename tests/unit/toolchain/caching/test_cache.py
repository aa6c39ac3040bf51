from __future__ import annotations

import hashlib
import multiprocessing
import threading
from pathlib import Path

import pytest

from toolchain.caching.cache import Cache, key
from toolchain.errors import ToolchainError


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def files(cache: Cache) -> list[Path]:
    return [path for path in cache.root.rglob("*") if path.is_file()]


def test_what_is_put_is_got(cache: Cache) -> None:
    name = key("export", "abc")
    assert cache.get(name) is None
    for content in (b"", b"\x00content"):
        cache.put(name, content)
        assert cache.get(name) == content
    assert cache.get(key("export", "abd")) is None


def test_a_key_tells_its_parts_apart() -> None:
    names = [key("ab", "c"), key("a", "bc"), key("abc"), key("ab", "c", ""), key("c", "ab"), key()]
    assert len(set(names)) == len(names)
    assert key("ab", b"c") == key(b"ab", "c")


@pytest.mark.parametrize("at", [0, 31, 32, -1])
def test_a_damaged_entry_is_made_again(cache: Cache, at: int) -> None:
    name = key("x")
    cache.put(name, b"good content")
    (path,) = files(cache)
    raw = bytearray(path.read_bytes())
    raw[at] ^= 1
    path.write_bytes(raw)
    assert cache.get(name) is None
    assert cache.get_or_make(name, lambda: b"made again") == b"made again"
    assert cache.get(name) == b"made again"


@pytest.mark.parametrize("length", [0, 10, 32, 43])
def test_a_truncated_entry_is_not_used(cache: Cache, length: int) -> None:
    cache.put(key("x"), b"good content")
    (path,) = files(cache)
    path.write_bytes(path.read_bytes()[:length])
    assert cache.get(key("x")) is None


def test_what_is_there_is_not_made(cache: Cache) -> None:
    cache.put(key("x"), b"there")
    assert cache.get_or_make(key("x"), lambda: pytest.fail("made")) == b"there"


def test_a_failed_write_leaves_nothing(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(ToolchainError, match="No space left"):
        cache.put(key("x"), b"content")
    assert not files(cache)


def test_a_cache_that_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for use in (lambda c: c.get(key("x")), lambda c: c.put(key("x"), b"")):
        with pytest.raises(ToolchainError, match="TILESTACK_CACHE_DIR"):
            use(Cache(tmp_path / "file"))


def _write_often(root: Path, content: bytes) -> None:
    for _ in range(100):
        Cache(root).put(key("x"), content)


def test_a_reader_beside_two_writing_processes_sees_whole_entries(cache: Cache) -> None:
    contents = (b"1" * 50_000, b"2" * 70_000)
    cache.put(key("x"), contents[0])
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write_often, args=(cache.root, content)) for content in contents]
    for writer in writers:
        writer.start()
    read: list[bytes | None] = []
    while any(writer.is_alive() for writer in writers):
        read.append(cache.get(key("x")))
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    assert set(read) <= set(contents) and read
    assert len(files(cache)) == 1


def test_threads_may_share_a_cache(cache: Cache) -> None:
    made: list[bytes] = []

    def work(content: bytes) -> None:
        made.append(cache.get_or_make(key(content), lambda: content))

    threads = [threading.Thread(target=work, args=(content,)) for content in (b"0", b"1") * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == [b"0"] * 4 + [b"1"] * 4


def test_an_entry_says_what_making_it_took(cache: Cache) -> None:
    cache.put(key("x"), b"content", 1.5)
    again = Cache(cache.root)
    assert again.get(key("x")) == b"content"
    assert (again.counts.hits, again.counts.saved, again.counts.read) == (1, 1.5, 56 + 7)
    assert (cache.counts.spent, cache.counts.written) == (1.5, 56 + 7)


def test_an_entry_without_a_head_is_read_and_says_no_time(cache: Cache) -> None:
    path = cache._path(key("x"))
    path.parent.mkdir(parents=True)
    path.write_bytes(hashlib.sha256(b"old").digest() + b"old")
    assert cache.get(key("x")) == b"old"
    assert (cache.counts.hits, cache.counts.unknown, cache.counts.saved) == (1, 1, 0.0)


def test_an_entry_under_another_key_is_not_used(cache: Cache) -> None:
    cache.put(key("x"), b"content")
    path = cache._path(key("y"))
    path.parent.mkdir(parents=True, exist_ok=True)
    cache._path(key("x")).rename(path)
    assert cache.get(key("y")) is None
    assert cache.counts.damaged == 1


def test_the_line_of_the_counts(cache: Cache) -> None:
    counts = cache.counts
    counts.add(hits=3, shared_hits=2, misses=1, read=1_500_000, received=500_000, saved=12.34, unknown=1, refused=4)
    assert str(counts) == (
        "cache: 5 of 6 found (2 in the shared cache); 2.0 MB read, 0.0 MB written; "
        "12.3 s of compiling saved (1 do not say); 4 not signed by a trusted key, not used"
    )

"""Looking after a cache: what goes, what stays, and that nobody is disturbed by it."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from toolchain.caching.cache import Cache, key
from toolchain.caching.upkeep import LEFT_OVER_S, clean, parse_age, parse_size, stored, verify
from toolchain.errors import UsageError

NOW = 1_000_000_000.0
HEAD = 56  # bytes of an entry beside its content


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    """Four entries of 100 bytes, last used 40, 30, 20 and 10 days ago."""
    made = Cache(tmp_path / "cache")
    for days in (40, 30, 20, 10):
        made.put(key(str(days)), b"x" * (100 - HEAD))
        used(made, str(days), days)
    return made


def file(cache: Cache, name: str) -> Path:
    return cache.root / key(name)[:2] / key(name)[2:]


def used(cache: Cache, name: str, days: float, now: float = NOW) -> None:
    os.utime(file(cache, name), (now - days * 86400,) * 2)


def left(cache: Cache) -> set[str]:
    return {days for days in ("40", "30", "20", "10") if cache.find(key(days)) is not None}


def test_by_age(cache: Cache) -> None:
    done = clean(cache, older_than_s=25 * 86400, now=NOW)
    assert (done.deleted, done.freed, done.left, done.bytes_left) == (2, 200, 2, 200)
    assert left(cache) == {"20", "10"}


def test_by_size_those_go_first_that_were_used_longest_ago(cache: Cache) -> None:
    done = clean(cache, most_bytes=150, now=NOW)
    assert (done.deleted, done.left, done.bytes_left) == (3, 1, 100)
    assert left(cache) == {"10"}
    assert clean(cache, most_bytes=100, now=NOW).deleted == 0


def test_a_dry_run_deletes_nothing(cache: Cache) -> None:
    assert clean(cache, most_bytes=0, dry=True, now=NOW).deleted == 4
    assert len(left(cache)) == 4


def test_an_entry_that_is_used_stays(cache: Cache) -> None:
    for days in (40, 0.5):  # counted from today
        used(cache, "40", days, now=time.time())
        before = file(cache, "40").stat().st_mtime
        assert cache.get(key("40"))
        assert (file(cache, "40").stat().st_mtime > before) == (days == 40)
    clean(cache, older_than_s=86400)
    assert left(cache) == {"40"}


def test_what_a_killed_process_left_goes(cache: Cache) -> None:
    folder = file(cache, "40").parent
    old, new = (folder / f".{'0' * 62}.{word}" for word in ("dead", "beef"))
    for path, age in ((old, LEFT_OVER_S + 1), (new, 1)):
        path.write_bytes(b"half")
        os.utime(path, (NOW - age,) * 2)
    assert clean(cache, older_than_s=1e9, now=NOW).freed == 4
    assert new.exists() and not old.exists() and len(left(cache)) == 4


def test_nothing_but_entries_is_touched(cache: Cache) -> None:
    other = cache.root / "images" / "base.tar"
    other.parent.mkdir()
    other.touch()
    clean(cache, most_bytes=0)
    assert other.exists() and not list(stored(cache))


def test_damaged_entries_are_deleted(cache: Cache) -> None:
    file(cache, "30").write_bytes(file(cache, "30").read_bytes()[:-1])
    assert verify(cache) == (4, 1) and verify(cache) == (3, 0)
    assert left(cache) == {"40", "20", "10"}


def test_others_may_use_it_meanwhile(tmp_path: Path) -> None:
    """Processes get what they put, or make it anew, whatever is deleted at the same time."""
    cache, over, wrong = Cache(tmp_path / "cache"), threading.Event(), list[object]()

    def compile_() -> None:
        try:
            for number in range(1500):
                content = str(number % 50).encode() * 100
                if cache.get_or_make(key(content), lambda content=content: content) != content:
                    wrong.append(number)
        except Exception as error:  # noqa: BLE001 - of any kind: it fails the test
            wrong.append(error)

    def look_after() -> None:
        try:
            while not over.is_set():
                clean(cache, most_bytes=2000)
                verify(cache)
        except Exception as error:  # noqa: BLE001
            wrong.append(error)

    compiles = [threading.Thread(target=compile_) for _ in range(2)]
    keepers = [threading.Thread(target=look_after) for _ in range(2)]
    for thread in (*compiles, *keepers):
        thread.start()
    for thread in compiles:
        thread.join()
    over.set()
    for thread in keepers:
        thread.join()
    assert wrong == []


def test_ages_and_sizes() -> None:
    assert [parse_age(text) for text in ("90m", "12h", "30d", "2w")] == [5400, 43200, 2592000, 1209600]
    assert [parse_size(text) for text in ("0", "100", "5kB", "500MB", "2 GB", "1GiB")] == [
        0, 100, 5000, 500_000_000, 2_000_000_000, 2**30,
    ]  # fmt: skip
    for text in ("", "30", "d", "1.5d", "-1d", "30 days"):
        with pytest.raises(UsageError, match="is not an age"):
            parse_age(text)
    for text in ("", "MB", "1.5GB", "-1", "5XB", "9" * 20):
        with pytest.raises(UsageError, match="is not a size"):
            parse_size(text)

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from toolchain.caching.cache import Cache, key
from toolchain.caching.shared import Shared, new_keys

from ..conftest import Run


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    monkeypatch.setenv("TILESTACK_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("TILESTACK_CACHE_URL", raising=False)
    return Cache(tmp_path / "cache")


def damage(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)


def test_stats_of_a_cache_that_is_not_there(cache: Cache, run: Run) -> None:
    ran = run("cache", "stats")
    assert ran.code == 0 and f"{cache.root}: 0 entries" in ran.out


def test_stats_tell_the_last_run_and_all(cache: Cache, run: Run) -> None:
    for name in "ab":
        cache.put(key(name), b"x" * 100, 2.0)
    assert cache.get(key("a")) and cache.get(key("none")) is None
    cache.record()
    again = Cache(cache.root)
    assert again.get(key("b"))
    again.record()
    found = json.loads(run("cache", "stats", "--json").out)
    assert (found["entries"], found["bytes"], found["runs"]) == (2, 2 * 156, 2)
    assert (found["last"]["hits"], found["last"]["misses"], found["last"]["saved"]) == (1, 0, 2.0)
    assert (found["total"]["hits"], found["total"]["misses"], found["total"]["saved"]) == (2, 1, 4.0)
    out = run("cache", "stats").out
    assert "last compile: cache: 1 of 1 found" in out and "2 compiles: cache: 2 of 3 found" in out


def test_verify_deletes_what_is_damaged(cache: Cache, run: Run) -> None:
    for name in "abc":
        cache.put(key(name), b"content")
    paths = [path for _, path in cache.names()]
    damage(paths[1])
    assert "3 entries, 1 damaged and deleted" in run("cache", "verify").out
    assert json.loads(run("cache", "verify", "--json").out)["damaged"] == 0
    assert [path for _, path in cache.names()] == [paths[0], paths[2]]


def test_info_is_stats_by_another_name(cache: Cache, run: Run) -> None:
    assert json.loads(run("cache", "info", "--json").out)["used"] is None
    cache.put(key("a"), b"content")
    assert run("cache", "info") == run("cache", "stats")
    assert "1 entries" in run("cache", "info").out and "last used: 2" in run("cache", "info").out


def test_clean_deletes_by_age_and_size(cache: Cache, run: Run) -> None:
    for name in "abc":
        cache.put(key(name), b"content")
    (first, *_) = (path for _, path in cache.names())
    os.utime(first, (0, 0))
    dry = run("cache", "clean", "--older-than", "30d", "--dry-run")
    assert dry.code == 0 and "1 entries would be deleted" in dry.out and first.exists()
    assert "1 entries deleted, 0.0 MB; 2 left" in run("cache", "clean", "--older-than", "30d").out
    assert not first.exists()
    shown = json.loads(run("cache", "clean", "--max-size", "1", "--json").out)
    assert (shown["deleted"], shown["left"], shown["dry_run"]) == (2, 0, False)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "say what to delete: --older-than or --max-size"),
        (["--older-than", "30"], "'30' is not an age\n  next: a number with m, h, d or w"),
        (["--max-size", "big"], "'big' is not a size\n  next: a number with kB, MB"),
    ],
)
def test_a_cleaning_that_is_refused_deletes_nothing(cache: Cache, run: Run, words: list[str], said: str) -> None:
    cache.put(key("a"), b"content")
    ran = run("cache", "clean", *words)
    assert ran.code == 2 and said in ran.err and len(list(cache.names())) == 1


def test_clear_deletes_entries_and_nothing_else(cache: Cache, run: Run) -> None:
    cache.put(key("a"), b"content")
    other = cache.root / "images" / "base.tar"
    other.parent.mkdir()
    other.touch()
    assert "1 entries deleted" in run("cache", "clear").out
    assert not list(cache.names()) and other.exists()


def test_verify_of_the_shared_cache_names_what_is_wrong(
    cache: Cache, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del cache
    assert run("cache", "verify", "--shared").code == 2
    url, (signing, public) = f"file://{tmp_path}/shared", new_keys()
    shared = Shared.open(url, [], signing)
    for name in "abc":
        shared.put(key(name), b"content", 1.0)
    monkeypatch.setenv("TILESTACK_CACHE_URL", url)
    monkeypatch.setenv("TILESTACK_CACHE_PUBLIC_KEY", public)
    assert run("cache", "verify", "--shared").code == 0
    damage(tmp_path / "shared" / key("b")[:2] / key("b")[2:])
    Shared.open(url, [], new_keys()[0]).put(key("c"), b"evil", 1.0)
    ran = run("cache", "verify", "--shared")
    assert ran.code == 1 and "1 good, 1 damaged, 1 not signed by a trusted key" in ran.out
    shown = run("cache", "verify", "--shared", "--json")
    assert shown.code == 1 and json.loads(shown.out) == {"url": url, "good": 1, "damaged": 1, "refused": 1, "errors": 0}


def test_a_new_pair_of_keys_fits(cache: Cache, run: Run, tmp_path: Path) -> None:
    del cache
    found = dict(line.split("=", 1) for line in run("cache", "key").out.splitlines())
    Shared.open(f"file://{tmp_path}/x", [found["TILESTACK_CACHE_PUBLIC_KEY"]], found["TILESTACK_CACHE_SIGNING_KEY"])

"""The plugin of pytest that records what becomes of a suite's tests."""

from __future__ import annotations

import json

import pytest

pytest_plugins = ["pytester"]

TESTS = """
import pytest

def test_right():
    pass

def test_wrong():
    assert 1 == 2, "they differ"

def test_left_out():
    pytest.skip("no GPU")

def test_slow():
    while True:
        pass

@pytest.fixture
def broken():
    raise ValueError("broken")

def test_set_up(broken):
    pass
"""


def test_each_test_is_a_line(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=TESTS, test_bad="import nothing_at_all")
    words = ["-p", "no:cacheprovider", "-p", "ci.suites.recording", "--continue-on-collection-errors"]
    pytester.runpytest_inprocess(*words, "--record", "record", "--seconds", "0.2")
    rows = {row["test"]: row for row in map(json.loads, (pytester.path / "record").read_text().splitlines())}
    outcomes = {name.partition("::")[2]: row["outcome"] for name, row in rows.items()}
    assert outcomes == {"test_right": "passed", "test_wrong": "failed", "test_left_out": "skipped",
                        "test_slow": "failed", "test_set_up": "failed", "": "failed"}  # fmt: skip
    assert rows["test_it.py::test_slow"]["reason"].startswith("Failed: Timeout: more than 0.2 seconds")
    assert 0.1 < rows["test_it.py::test_slow"]["seconds"] < 1 > rows["test_it.py::test_right"]["seconds"]
    assert "they differ" in rows["test_it.py::test_wrong"]["reason"]
    assert rows["test_it.py::test_left_out"]["reason"].endswith("no GPU")
    assert "nothing_at_all" in rows["test_bad.py"]["reason"]

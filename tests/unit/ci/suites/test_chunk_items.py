"""Each chunk of a file as a test of pytest."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

PLUGIN = """
import pytest
from ci.suites.chunk_items import collecting

def judge(path, file, chunk):
    if "skip" in chunk.text:
        pytest.skip("not ours")
    assert "wrong" not in chunk.text, f"{path.name}: {file.runs[0]}"

pytest_collect_file = collecting(judge)
"""


def test_a_suites_plugin_judges_each_chunk(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(PLUGIN)
    pytester.makefile(".mlir", one="// RUN: t -split-input-file\nright\n// -----\nwrong\n// -----\nskip\n")
    pytester.makefile(".txt", two="wrong\n")
    done = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-rA")
    done.assert_outcomes(passed=1, failed=1, skipped=1)
    done.stdout.fnmatch_lines(
        ["*one.mlir: t -split-input-file*", "PASSED one.mlir::line 1*", "FAILED one.mlir::line 4*"]
    )

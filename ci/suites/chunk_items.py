"""Each chunk of a file of LLVM's kind (chunks.py) as a test of pytest. A suite's plugin says what becomes of one:

pytest_collect_file = collecting(judge)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from toolchain.cute.chunks import Chunk, TestFile

# Raises AssertionError or one of our errors for a chunk that fails, and calls pytest.skip for one that is not for us.
Judge = Callable[[Path, TestFile, Chunk], None]


def collecting(judge: Judge, suffix: str = ".mlir") -> Callable[[Path, pytest.Collector], pytest.File | None]:
    """A `pytest_collect_file` that makes a test of each chunk of the files with this suffix."""

    def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.File | None:
        return _File.from_parent(parent, path=file_path, judge=judge) if file_path.suffix == suffix else None

    return pytest_collect_file


class _File(pytest.File):
    def __init__(self, *, judge: Judge, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._judge = judge

    def collect(self) -> Iterator[pytest.Item]:
        file = TestFile(self.path.read_text())
        for chunk in file.chunks:
            yield _Item.from_parent(self, name=f"line {chunk.line}", judge=self._judge, file=file, chunk=chunk)


class _Item(pytest.Item):
    def __init__(self, *, judge: Judge, file: TestFile, chunk: Chunk, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._judge, self._file, self._chunk = judge, file, chunk

    def runtest(self) -> None:
        self._judge(self.path, self._file, self._chunk)

"""Where in Python a kernel's operation was written."""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import os
from pathlib import Path
from types import CodeType

from xdsl.dialects.builtin import FileLineColLoc

from ..nvvm.location import at

# Files that are passed on the way to the caller: those of `toolchain/cute`, and that of `with when(...)`.
_PASSED = (str(Path(__file__).parents[1]), contextlib.__file__)


def caller() -> FileLineColLoc:
    """The nearest call that is not the front end's own."""
    frame = inspect.currentframe()
    assert frame is not None
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PASSED):
        frame = frame.f_back
    return _place(frame.f_code, frame.f_lasti, frame.f_lineno, os.getcwd())  # noqa: PTH109


@functools.cache
def _place(code: CodeType, instruction: int, line: int, folder: str) -> FileLineColLoc:
    """A loop of the kernel's Python comes here many times."""
    positions = next(itertools.islice(code.co_positions(), instruction // 2, None))
    return at(code.co_filename.removeprefix(f"{folder}/"), line, (positions[2] or 0) + 1)

"""Where in Python a kernel's operation was written."""

from __future__ import annotations

import contextlib
import inspect
import itertools
import os
from pathlib import Path

from xdsl.dialects.builtin import FileLineColLoc

from ..nvvm.location import at

# Files that are passed on the way to the caller: the front end's own, and that of `with when(...)`.
_PASSED = (str(Path(__file__).parent), contextlib.__file__)


def caller() -> FileLineColLoc:
    """The nearest call that is not the front end's own."""
    frame = inspect.currentframe()
    assert frame is not None
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PASSED):
        frame = frame.f_back
    positions = next(itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
    column = positions[2] or 0
    return at(frame.f_code.co_filename.removeprefix(f"{os.getcwd()}/"), frame.f_lineno, column + 1)  # noqa: PTH109

"""Python imports this as it starts, in the processes that `tilestack run` starts: it makes them run launches on the
interpreter too. Another sitecustomize that would have been imported follows."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from pathlib import Path

_HERE = Path(__file__).resolve()
_ROOT = str(_HERE.parents[3])  # of the checkout, or of an installed wheel's library


def _start() -> None:
    sys.path.append(_ROOT)
    try:
        from toolchain import emulation, knobs
        from toolchain.emulation.settings import parse
    finally:
        sys.path.remove(_ROOT)
    if (text := knobs.interpret()) is not None:
        sys.path.append(_ROOT)  # for what the launches will import; behind the program's own
        emulation.start(parse(text))


def _follow() -> None:
    others = [each for each in sys.path if Path(each or ".").resolve() != _HERE.parent]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


_start()
_follow()

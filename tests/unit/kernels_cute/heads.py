"""The lines at the head of a kernel's module that run it."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

from toolchain.cute.executor import TensorMap, run


def run_head(module: ModuleType, **given: Any) -> None:
    """Runs them, with the arrays and numbers that they name. The head has three steps before."""
    head = module.__doc__ or ""
    assert re.findall(r"^(\d)\. (?:Load|Weigh|Add|Multiply|Write|Mean|Variance): ", head, re.MULTILINE) == [
        "1",
        "2",
        "3",
    ]
    lines = [line.removeprefix("    ") for line in head.splitlines() if line.startswith("    ")]
    exec("\n".join(lines), {**vars(module), "run": run, "TensorMap": TensorMap, "arrays": given, **given})

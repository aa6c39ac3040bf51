"""A bundle with some kernels slowed on purpose, to see that the gate finds them. No such entry is ever shipped.

The cubins stay as they are; only launch grids change. A kernel that walks tiles with one block per multiprocessor gets
fewer blocks. Any other gets blocks behind the end of its arrays, which load and store nothing but take their turn.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from toolchain.bundles.bundle import MANIFEST, Bundle, check_replaceable
from toolchain.errors import UsageError

SMS = re.compile(r"\bSMS\b")


def slowed_grid(grid: Sequence[str], percent: int) -> list[str]:
    """A launch grid with `percent` % more blocks along its last dimension that has several, or of a kernel that walks
    tiles with so many fewer. How much slower that makes the kernel has to be measured."""
    if any(SMS.search(text) for text in grid):
        return [SMS.sub(f"(SMS * 100 // {100 + percent})", text) for text in grid]
    last = max((i for i, text in enumerate(grid) if text != "1"), default=0)
    return [f"cdiv(({text}) * {100 + percent}, 100)" if i == last else text for i, text in enumerate(grid)]


def write_slowed(bundle: Path, output: Path, ops: Sequence[str], percent: int) -> Bundle:
    """A copy of a bundle in which the entries of `ops` are launched with a worse grid. Raises UsageError if the bundle
    has none of an op, or if `output` is no bundle."""
    loaded = Bundle.load(bundle)
    if unknown := set(ops) - {entry.spec.op for entry in loaded.entries}:
        raise UsageError(f"{bundle} has no entry of {', '.join(sorted(unknown))}")
    check_replaceable(output)
    shutil.rmtree(output, ignore_errors=True)
    shutil.copytree(bundle, output)
    manifest: dict[str, Any] = json.loads((output / MANIFEST).read_text())
    for row in manifest["entries"]:
        if row["spec"]["op"] in ops:
            row["spec"]["grid"] = slowed_grid(row["spec"]["grid"], percent)
    (output / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
    return Bundle.load(output)

"""Whether new results say the same as the committed table."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import replace

from toolchain.errors import UsageError

from .page import page
from .table import Settings, Table, merge


def difference(kept: Table, results: Sequence[Table], settings: Settings) -> str:
    """The page's lines that the results of the compile half change, as a unified diff; empty if there are none. Dates,
    and the hash of the kernels, are no change: they differ with every run and with every commit of a kernel.

    Raises UsageError if a version of tileiras that the table has was not measured.
    """
    new = merge(results)
    if missing := sorted({row.tileiras for row in kept.compiled} - {row.tileiras for row in new.compiled}):
        raise UsageError(
            f"no results of tileiras {', '.join(missing)}, which the support table has",
            hint=" ".join(["nox -s support --", *(f"--tileiras {version}" for version in missing)]),
        )
    dates = {**new.dates, **kept.dates}
    made = replace(new, kernels=kept.kernels, dates=dates, ran=kept.ran)
    before, after = (page(table, settings).splitlines() for table in (kept, made))
    return "\n".join(difflib.unified_diff(before, after, "docs/support.md", "measured", n=1, lineterm=""))

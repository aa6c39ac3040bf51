"""The noise of a GPU: the rounds of runs of a bundle beside a copy of itself, in which every change is an error."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report.result import Results
from benchmarks.rows import by_rows
from toolchain.errors import UsageError
from toolchain.files import write_whole

from .measure import BASE
from .measurement import Key, measurements
from .statistics import Floats

UNIT = 1e-5  # of the whole numbers in the file, as a log change


def record(runs: Sequence[Results], path: Path) -> int:
    """Keeps the log changes of every round. Returns how many cells there are. Raises UsageError if a run was of two
    bundles that differ, or the runs are not of one kind of GPU, or a cell is not in all of them."""
    first = runs[0].environment
    for run in runs:
        if run.environment["against"][BASE]["bundle"] != run.environment["bundle"]:
            raise UsageError("noise is measured with a bundle beside a copy of itself", hint="--against base=COPY")
        if run.environment["gpu"] != first["gpu"]:
            raise UsageError(f"runs on {first['gpu']} and {run.environment['gpu']} have no noise in common")
    found = [measurements(run, BASE) for run in runs]
    if any(one.failure for run in found for one in run.values()) or len({frozenset(run) for run in found}) != 1:
        raise UsageError("the runs are not of the same cells, or one has a failure")
    document: dict[str, Any] = {
        "gpu": first["gpu"],
        "driver": first["driver"],
        "commit": first["bundle_commit"],
        "dates": [run.environment["date"] for run in runs],
        "unit": UNIT,
        "cells": [
            {
                "case": case,
                "source": source,
                "runs": [np.rint(run[case, source].log_changes / UNIT).astype(int).tolist() for run in found],
            }
            for case, source in found[0]
        ],
    }
    write_whole(path, by_rows(document), parents=True)
    return len(document["cells"])


def load(path: Path) -> tuple[Mapping[str, Any], dict[Key, Floats]]:
    """What it is of, and the log changes of each cell: (runs, rounds). Raises UsageError if the file has no noise."""
    try:
        document: dict[str, Any] = json.loads(path.read_text())
        cells: list[dict[str, Any]] = document.pop("cells")
        return document, {(c["case"], c["source"]): document["unit"] * np.array(c["runs"], float) for c in cells}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        hint = "`python -m ci.gate noise` writes it"
        raise UsageError(f"{path}: no noise of a GPU ({type(error).__name__}: {error})", hint=hint) from error

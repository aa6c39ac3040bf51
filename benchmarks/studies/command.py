"""The command line of a study that is built on any machine and run on a GPU."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..rows import by_rows

Say = Callable[[str], object]


def build_or_run(
    name: str, doc: str | None, build: Callable[[Path], object], run: Callable[[Path, Say], dict[str, Any]],
    words: Sequence[str] | None,
) -> None:  # fmt: skip
    """`build FOLDER` or `run FOLDER [--output FILE]`, which writes what `run` returns as JSON."""
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.studies.{name}", description=doc,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("step", choices=["build", "run"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--output", type=Path, default=Path(f"{name}.json"))
    asked = parser.parse_args(words)
    if asked.step == "build":
        build(asked.folder)
    else:
        asked.output.write_text(by_rows(run(asked.folder.resolve(), print)))

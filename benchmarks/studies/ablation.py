"""An ablation: times the model from naive kernels to the shipped ones, with one design choice added at a time.

python -m benchmarks.studies.ablation build FOLDER    # a bundle for each stage, on any machine
python -m benchmarks.studies.ablation run FOLDER      # all stages in turn, each output checked before; on a GPU
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .command import Say, build_or_run


def _build(folder: Path) -> None:
    from .ablation_build import build  # it needs the compiler

    build(folder)


def _run(folder: Path, say: Say) -> dict[str, Any]:
    from .ablation_run import run  # it needs PyTorch

    return run(folder, say)


def main(words: Sequence[str] | None = None) -> None:
    build_or_run("ablation", __doc__, _build, _run, words)


if __name__ == "__main__":
    main()

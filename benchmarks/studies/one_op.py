"""One op in five languages: lines, seconds to compile, time on a GPU, share of the roofline, error.

python -m benchmarks.studies.one_op build FOLDER      # cubins of the tiled kernels, on any machine
python -m benchmarks.studies.one_op seconds FOLDER    # how long each compiler takes, on any machine
python -m benchmarks.studies.one_op run FOLDER        # on a GPU with PyTorch and Triton
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ..rows import by_rows


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.studies.one_op", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    steps = parser.add_subparsers(dest="step", required=True)
    for name in ("build", "seconds", "run"):
        step = steps.add_parser(name)
        step.add_argument("folder", type=Path)
        step.add_argument("--output", type=Path, default=Path(f"one-op-{name}.json"))
    once = steps.add_parser("once")
    once.add_argument("language")
    once.add_argument("op")
    asked = parser.parse_args(words)
    if asked.step == "run":
        from .one_op_run import run  # it needs PyTorch

        asked.output.write_text(by_rows(run(asked.folder, print)))
        return
    from . import one_op_build  # it needs the compiler

    if asked.step == "build":
        one_op_build.build(asked.folder)
    elif asked.step == "once":
        one_op_build.once(asked.language, asked.op)
    else:
        asked.output.write_text(by_rows({"rows": one_op_build.seconds(print)}))


if __name__ == "__main__":
    main()

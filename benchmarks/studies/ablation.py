"""`python -m benchmarks.studies.ablation build FOLDER` compiles a bundle for each stage; `… run FOLDER` times them.

Bundles are compiled on any machine; the times are taken on a GPU, all stages in turn, each output checked before.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.studies.ablation", description=__doc__)
    parser.add_argument("what", choices=["build", "run"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--output", type=Path, default=Path("ablation.json"))
    asked = parser.parse_args(words)
    if asked.what == "build":
        from .ablation_build import build  # it needs the compiler

        build(asked.folder)
        return
    from .ablation_run import run  # it needs PyTorch

    document: dict[str, Any] = run(asked.folder, print)
    asked.output.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()

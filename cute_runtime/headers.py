"""The folders of the C++ headers."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from toolchain.errors import ToolchainError

HEADERS = Path(__file__).parent / "include"


def include_dirs() -> tuple[Path, ...]:
    """The folders to give to a C++ compiler: ours, then the one of cuda.h, which the wheel nvidia-cuda-runtime brings.

    Raises ToolchainError if that wheel is not installed.
    """
    spec = importlib.util.find_spec("nvidia")
    places = [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
    found = sorted(header.parent for place in places for header in place.glob("*/include/cuda.h"))
    if not found:
        raise ToolchainError(
            "no cuda.h beside this Python's packages",
            hint="pip install nvidia-cuda-runtime, or give your compiler the include folder of a CUDA toolkit",
        )
    return HEADERS, found[-1]

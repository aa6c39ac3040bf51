"""The sizes and variants that the study of one op compares, for layernorm and causal attention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent / "kernels"
ROWS, WIDTH, EPS = 8192, 768, 1e-5  # layernorm of GPT-2 124M at 8 x 1024 tokens
HEADS, LENGTH, SIZE = 8 * 12, 1024, 64  # its attention: sequences x heads, tokens, head size
SCALE_LOG2 = 1.4426950408889634 / SIZE**0.5  # scores in base 2
COMMENTS = {".cu": "//", ".mlir": "//", ".py": "#"}


@dataclass(frozen=True)
class Tile:
    """A tiled kernel as it is compiled: the rows of a tile (layernorm: its width), hints for the compiler."""

    name: str
    constants: Mapping[str, int]
    hints: Mapping[str, int]


# Few variants of each language, the same effort for all: the study quotes the fastest.
CUDA_WARPS = (2, 4, 8)  # rows of a block of layernorm
TRITON_LAYERNORM = ({"num_warps": 1}, {"num_warps": 2}, {"num_warps": 4}, {"num_warps": 8})
TRITON_ATTENTION = (
    {"BM": 64, "BN": 64, "num_warps": 4, "num_stages": 2}, {"BM": 128, "BN": 64, "num_warps": 4, "num_stages": 3},
    {"BM": 128, "BN": 64, "num_warps": 8, "num_stages": 3}, {"BM": 128, "BN": 128, "num_warps": 8, "num_stages": 2},
)  # fmt: skip
CUTILE_LAYERNORM = (
    Tile("plain", {"TILE": 1024}, {}),
    Tile("warps1", {"TILE": 1024}, {"num_worker_warps": 1}),
    Tile("warps2", {"TILE": 1024}, {"num_worker_warps": 2}),
    Tile("warps2-occupancy8", {"TILE": 1024}, {"num_worker_warps": 2, "occupancy": 8}),
)
CUTILE_ATTENTION = (
    Tile("64x64", {"TQ": 64, "TK": 64, "D": SIZE}, {}),
    Tile("64x64-occupancy2", {"TQ": 64, "TK": 64, "D": SIZE}, {"occupancy": 2}),
    Tile("64x64-occupancy4", {"TQ": 64, "TK": 64, "D": SIZE}, {"occupancy": 4}),
    Tile("128x64-warps8", {"TQ": 128, "TK": 64, "D": SIZE}, {"num_worker_warps": 8}),
)


def lines(op: str, language: str) -> int:
    """Lines of a kernel's source without comments and blank lines; in Python those of its function."""
    file = {"cuda": f"{op}.cu", "triton": "triton_kernels.py", "cutile": "cutile_kernels.py", "tile-ir": f"{op}.mlir"}
    path = HERE / file[language]
    text = path.read_text()
    if path.suffix == ".py":
        text = next(part for part in text.split("\n\n\n") if f"def {op}(" in part)
    return sum(bool(line.strip()) and not line.strip().startswith(COMMENTS[path.suffix]) for line in text.splitlines())

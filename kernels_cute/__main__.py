"""`python -m kernels_cute FOLDER`: compiles the GEMMs and the attention for Hopper, for `python -m benchmarks.cute_gemm
FOLDER` and `python -m benchmarks.cute_attention FOLDER`."""

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from toolchain.compiling.stages import compile_ptx
from toolchain.cute.dsl import Kernel

from . import attention, attention_mma, attention_walk, linear, linear_sm90

# Target, architecture of the PTX, and tiles: the fastest found at 8192^3, 4096^3 and at GPT-2's shapes.
GEMMS: tuple[tuple[str, str, Any], ...] = (
    ("sm_90", "sm_80", linear.Tiles(128, 128, 64, 3, (2, 2))),
    ("sm_90", "sm_80", linear.Tiles(128, 256, 64, 4, (2, 4))),
    ("sm_90", "sm_80", linear.Tiles(192, 256, 64, 4, (2, 4))),
    ("sm_90a", "sm_90a", linear_sm90.Tiles(128, 256, 64, 4, 2)),
    ("sm_90a", "sm_90a", linear_sm90.Tiles(128, 192, 64, 4, 1, apart=True)),
    ("sm_90a", "sm_90a", linear_sm90.Tiles(64, 256, 64, 4, 4, apart=True)),
)

# On a multiprocessor: four blocks of a warpgroup that computes; two blocks, the scores of the next keys under way; one
# block of two warpgroups that multiply in turns. The last one is for sm_80.
ATTENTIONS: tuple[tuple[str, attention_walk.Tiles | attention_mma.Tiles], ...] = (
    ("bf16", attention_walk.Tiles(anchored=True)),
    ("bf16", attention_walk.Tiles(keys=128, blocks=2, ahead=True, anchored=True)),
    ("bf16", attention_walk.Tiles(consumers=2, keys=128, blocks=1, ahead=True, in_turns=True, anchored=True)),
    ("bf16", attention_walk.Tiles()),
    ("f16", attention_walk.Tiles()),
    ("bf16", attention_walk.Tiles(head=128, blocks=2, anchored=True)),
    ("f16", attention_walk.Tiles(head=128, blocks=2)),
    ("bf16", attention_mma.Tiles()),
)


def main() -> None:
    """Writes a cubin for each kernel, and gemms.json and attentions.json with what a launch needs."""
    parser = argparse.ArgumentParser(prog="python -m kernels_cute", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "gemms.json").write_text(json.dumps(_gemms(folder), indent=1) + "\n")
    (folder / "attentions.json").write_text(json.dumps(_attentions(folder), indent=1) + "\n")


def _gemms(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for number, (target, arch, tiles) in enumerate(GEMMS):
        tma = isinstance(tiles, linear_sm90.Tiles)
        made = linear_sm90.linear("bf16", tiles) if tma else linear.linear("bf16", tiles)
        shape = {key: value for key, value in asdict(tiles).items() if key != "warps"}
        maps = [asdict(made) for made in linear_sm90.maps(tiles)] if tma else []
        row = _compiled(made, arch, target, folder / f"gemm{number}.cubin")
        rows.append({**row, "maps": maps, "tiles": shape})
    return rows


def _attentions(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for number, (dtype, tiles) in enumerate(ATTENTIONS):
        tma = isinstance(tiles, attention_walk.Tiles)
        made = attention.attention(dtype, tiles) if tma else attention_mma.attention(dtype, tiles)
        arch, target = ("sm_90a", "sm_90a") if tma else ("sm_80", "sm_90")
        row = _compiled(made, arch, target, folder / f"attention{number}.cubin")
        maps = [asdict(made) for made in attention.maps(tiles)] if tma else []
        rows.append({**row, "maps": maps, "tiles": asdict(tiles), "rows": tiles.rows, "dtype": dtype})
    return rows


def _compiled(made: Kernel, arch: str, target: str, file: Path) -> dict[str, Any]:
    """Writes a cubin; what its launch needs."""
    start = time.perf_counter()
    file.write_bytes(compile_ptx(made.ptx(arch).encode(), target))
    print(f"{file.name}: {made.name}, {time.perf_counter() - start:.2f} s from cute IR to cubin")
    return {"file": file.name, "symbol": made.name, "threads": made.threads, "shared": made.shared_bytes}


if __name__ == "__main__":
    main()

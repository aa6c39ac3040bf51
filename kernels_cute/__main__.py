"""`python -m kernels_cute FOLDER`: compiles the GEMMs for Hopper, for `python -m benchmarks.cute_gemm FOLDER`."""

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from toolchain.stages import compile_ptx

from . import linear, linear_sm90

# Target, architecture of the PTX, and tiles: the fastest found at 8192^3 and at GPT-2's shapes.
GEMMS: tuple[tuple[str, str, Any], ...] = (
    ("sm_90", "sm_80", linear.Tiles(128, 256, 64, 3, (2, 4))),
    ("sm_90", "sm_80", linear.Tiles(128, 128, 32, 4, (2, 2))),
    ("sm_90", "sm_80", linear.Tiles(128, 128, 32, 5, (2, 2))),
    ("sm_90a", "sm_90a", linear_sm90.Tiles(128, 256, 64, 4, 2)),
    ("sm_90a", "sm_90a", linear_sm90.Tiles(128, 192, 64, 4, 1, apart=True)),
    ("sm_90a", "sm_90a", linear_sm90.Tiles(64, 256, 64, 4, 4, apart=True)),
)


def main() -> None:
    """Writes a cubin for each GEMM, and gemms.json with what a launch needs and the seconds from source to cubin."""
    parser = argparse.ArgumentParser(prog="python -m kernels_cute", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    for number, (target, arch, tiles) in enumerate(GEMMS):
        start = time.perf_counter()
        tma = isinstance(tiles, linear_sm90.Tiles)
        made = linear_sm90.linear("bf16", tiles) if tma else linear.linear("bf16", tiles)
        cubin = compile_ptx(made.ptx(arch).encode(), target)
        seconds = time.perf_counter() - start
        file = f"gemm{number}.cubin"
        (folder / file).write_bytes(cubin)
        shape = {key: value for key, value in asdict(tiles).items() if key != "warps"}
        maps = [asdict(made) for made in linear_sm90.maps(tiles)] if tma else []
        row = {"file": file, "symbol": made.name, "maps": maps, "threads": made.threads, "shared": made.shared_bytes}
        rows.append({**row, "tiles": shape, "seconds": round(seconds, 2)})
        print(f"{file}: {made.name} {tiles}, {seconds:.2f} s from source to cubin")
    (folder / "gemms.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""`python -m benchmarks.cute.decode_step_of_ranks FOLDER [--only WORD] [--device cuda:0 --device cuda:1] [--output
FILE]`: a decoding step of a GPT-2 that several GPUs share, one CuTe kernel on each, in several variants, those with a
word in their names: 124M, and XL. All ranks have as much here, of XL 12 heads or 13, so that the second is the slower.

Compile them before with `python -m benchmarks.cute.kernels FOLDER`, on any machine. Each is checked against float64
before it is timed, all ranks must have told each other the same sums, and the logits must have the same bits after. A
time is of launches in a CUDA graph on each GPU, of the rank with the shortest, since none ends before the others come.
Launches of the same step are timed by `python -m benchmarks.collectives model`. A device that is named twice has two
ranks, which find room there if they have few blocks: what is right there need not be right over NVLink.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.cases import Case
from conformance.ops.inputs import Inputs, make_inputs
from conformance.ops.ranks import stacked, upload_ranks
from conformance.ops.run import Expected, references, verdict
from conformance.results.stats import median
from toolchain import command
from toolchain.bundles.bundle import Bundle, BundleEntry
from toolchain.contract.entry import EntrySpec
from toolchain.contract.op import ops
from toolchain.errors import ConformanceError, TilestackError, UsageError
from toolchain.runtime import DeviceBuffer
from toolchain.runtime.launch import EntryLauncher
from toolchain.runtime.peers import Peers, open_peers

from ..rows import by_rows
from .decode_step import alike_in_sizes

OP, DTYPE, HEAD, UNITS = "decode_step_of_ranks", "bf16", 64, 8
CLUSTER = 8  # blocks, where an entry says nothing
LAUNCHES, REPLAYS = 20, 30


def main() -> int:
    """Checks and times all, prints their rows and writes JSON. Returns 1 if one of them failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cute.decode_step_of_ranks", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", action="append", default=[], help="of each rank (default cuda:0 and cuda:1)")
    parser.add_argument("--only", default="", metavar="WORD")
    parser.add_argument("--output", type=Path)
    asked = parser.parse_args()
    devices = asked.device or ["cuda:0", "cuda:1"]
    bundle = Bundle.load(asked.folder)
    entries = [
        entry
        for entry in bundle.entries
        if entry.spec.op == OP and entry.spec.constants["R"] == len(devices) and asked.only in entry.spec.symbol
    ]
    if not entries:
        raise UsageError(
            f"{asked.folder} has no entry of {OP} for {len(devices)} ranks",
            hint=f"python -m benchmarks.cute.kernels {asked.folder}",
        )
    rows: list[dict[str, Any]] = []
    with open_peers(devices) as peers:
        print(peers.executors[0].name, flush=True)
        for case, alike in alike_in_sizes(entries, of_entry):
            inputs = make_inputs(case, DTYPE, seed=0)
            expected = references(case, DTYPE, inputs)
            for entry in alike:
                try:
                    row = measured(bundle, entry, case, inputs, expected, peers)
                except TilestackError as error:  # the other variants are of interest all the same
                    row = {"failed": str(error)}
                rows.append({"variant": entry.spec.symbol} | row)
                print(json.dumps(rows[-1]), flush=True)
        gpu = peers.executors[0].name
    if asked.output:
        asked.output.write_text(by_rows({"gpu": gpu, "devices": devices, "rows": rows}))
    return int(any("failed" in row for row in rows))


def of_entry(spec: EntrySpec) -> Case:
    """The sizes that an entry is for, on ranks that have as much each, at the last position of the longest cache."""
    c = spec.constants
    cluster = c.get("CLUSTER", CLUSTER)
    blocks, units = cluster * c["CLUSTERS"], c["H"] * c["UNITS"] + (c["CLUSTERS"] - c["H"]) * c["UNITS_APART"]
    hidden = cluster * units
    sizes = {name: c[name] for name in "LCXKHR"} | {
        "A": HEAD * c["H"], "D": HEAD, "E": 3 * HEAD * c["H"], "F": hidden, "G": hidden // UNITS, "U": UNITS,
        "V": c["K"] * c["R"], "P": c["X"], "N": 1, "TWO": 2, "B": blocks, "W": c["C"] // HEAD,
        "S": 4 * c["L"] * c["C"], "Q": 4 * c["R"] * c["C"],
    }  # fmt: skip
    return Case(OP, sizes, "a variant of the step")


def measured(
    bundle: Bundle, entry: BundleEntry, case: Case, inputs: Inputs, expected: Expected, peers: Peers
) -> dict[str, Any]:
    """Checks an entry's results, then times it. Raises ConformanceError for a wrong result."""
    heap = peers.heap(2 * 8 * case.dims["Q"] + 4096)
    try:
        buffers = upload_ranks(case, inputs, peers, heap)
        launchers = [EntryLauncher(executor) for executor in peers.executors]
        launches = [
            partial(launcher, bundle, entry, {**buffers[rank], **inputs.scalars, "rank": rank})
            for rank, launcher in enumerate(launchers)
        ]
        found = _timed(peers, launches, partial(_checked, case, buffers, expected))
    finally:
        for executor in peers.executors:
            executor.synchronize()
        heap.close()
    share, samples = found
    value, low, high = median(samples)
    return {"share_of_bound": round(share, 3), "us": round(value, 2), "low": round(low, 2), "high": round(high, 2)}


def _timed(
    peers: Peers, launches: Sequence[Callable[[], object]], check: Callable[[], tuple[float, NDArray[Any]]]
) -> tuple[float, list[float]]:
    """What `check` says, and samples of a launch in µs. Captured first: a kernel is loaded at its first launch, and
    nothing is loaded beside one that waits."""
    with peers.capture() as once:
        for launch in launches:
            launch()
    with peers.capture() as graphs:
        for _ in range(LAUNCHES):
            for launch in launches:
                launch()
    once.replay()
    check()
    once.replay()  # finds the words of the first
    share, logits = check()

    def sample() -> float:
        starts = [executor.record() for executor in peers.executors]
        graphs.replay()
        ends = [executor.record() for executor in peers.executors]
        for executor in peers.executors:
            executor.synchronize()
        return min(end.us_since(start) for start, end in zip(starts, ends, strict=True)) / LAUNCHES

    samples = [sample() for _ in range(REPLAYS)]
    if not np.array_equal(logits, check()[1]):
        raise ConformanceError("another launch has other bits")
    return share, samples


def _checked(
    case: Case, buffers: Sequence[Mapping[str, DeviceBuffer]], expected: Expected
) -> tuple[float, NDArray[Any]]:
    """The largest share of a bound, and the logits of all ranks. Raises ConformanceError."""
    for rank, own in enumerate(buffers):
        late = own["errors"].numpy()
        if late.any():
            raise ConformanceError(f"rank {rank} waited in vain: {np.unique(late).tolist()}, see {OP} in ops.toml")
    share = 0.0
    results = {param.name: stacked(case.op, param.name, buffers) for param in ops()[OP].results}
    for name, pair in expected.items():
        found = verdict(case.op, DTYPE, name, results[name], *pair)
        if not found.error <= found.bound:
            raise ConformanceError(f"{name} is off by {found.error:.2g}, over {found.bound:.2g}")
        share = max(share, found.share)
    told = [own["met"].select(0, rank).numpy() for rank, own in enumerate(buffers)]
    if any(not np.array_equal(one, told[0]) for one in told):
        raise ConformanceError("the ranks have other sums")
    return share, results["logits"]


if __name__ == "__main__":
    raise SystemExit(command.run(main, set_up="on GPUs it needs cuda-bindings, see docs/benchmarks.md"))

"""`python -m benchmarks.cute.decode_step FOLDER [--only WORD] [--output FILE]`: a decoding step of GPT-2 in one CuTe
kernel, in several variants, on this GPU: of 124M one text with weights and a cache of 16 and of 8 bits, and eight
texts; of medium, large and XL one text. `--only xl`: variants with that in their name.

Compile them before with `python -m benchmarks.cute.kernels FOLDER`, on any machine. Each is checked against float64
before it is timed, and its logits must have the same bits after. A time is the median of launches in a CUDA graph.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from conformance.cases import Case
from conformance.ops.inputs import Inputs, make_inputs
from conformance.ops.run import Expected, references, upload, verdict
from gpt.config import GPTConfig
from gpt.families.one_launch import OP, OP_F8, OP_F8_LOGITS, OPS_CACHE_F8, OPS_TEXTS, TEXTS, dims
from gpt.parameters.step_weights import COLUMNS
from toolchain import command
from toolchain.bundles.bundle import Bundle, BundleEntry
from toolchain.contract.entry import EntrySpec
from toolchain.errors import ConformanceError, TilestackError, UsageError
from toolchain.runtime import Executor, open_executor
from toolchain.runtime.launch import EntryLauncher

from ..rows import by_rows

OPS, DTYPE = (OP, OP_F8, OP_F8_LOGITS, *OPS_CACHE_F8, *OPS_TEXTS), "bf16"
LAUNCHES, REPLAYS = 20, 30


def main() -> int:
    """Checks and times all, prints their rows and writes JSON. Returns 1 if one of them failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cute.decode_step", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", metavar="WORD")
    parser.add_argument("--output", type=Path)
    asked = parser.parse_args()
    bundle = Bundle.load(asked.folder)
    entries = [entry for entry in bundle.entries if entry.spec.op in OPS and asked.only in entry.spec.symbol]
    if not entries:
        raise UsageError(
            f"{asked.folder} has no entry of {' or '.join(OPS)} with {asked.only!r} in its name",
            hint=f"python -m benchmarks.cute.kernels {asked.folder}",
        )
    executor = open_executor("cuda")
    print(executor.name, flush=True)
    rows: list[dict[str, Any]] = []
    for case, alike in alike_in_sizes(entries, partial(of_entry, sms=executor.sms)):
        inputs = at_the_end(make_inputs(case, DTYPE, seed=0))
        expected = references(case, DTYPE, inputs)
        for entry in alike:
            try:
                row = measured(bundle, entry, case, inputs, expected, executor)
            except TilestackError as error:  # the other variants are of interest all the same
                row = {"failed": str(error)}
            rows.append({"variant": entry.spec.symbol} | row)
            print(json.dumps(rows[-1]), flush=True)
    if asked.output:
        asked.output.write_text(by_rows({"gpu": executor.name, "rows": rows}))
    return int(any("failed" in row for row in rows))


def alike_in_sizes(
    entries: Sequence[BundleEntry], of: Callable[[EntrySpec], Case]
) -> list[tuple[Case, list[BundleEntry]]]:
    """Cases, each with its entries: they share inputs and references, which take as long as all else. `of` says the
    case of an entry."""
    found: list[tuple[Case, list[BundleEntry]]] = []
    for entry in entries:
        case = of(entry.spec)
        alike = next((alike for other, alike in found if other == case), None)
        if alike is None:
            found.append((case, alike := []))
        alike.append(entry)
    return found


def of_entry(spec: EntrySpec, sms: int) -> Case:
    """The sizes that an entry is for, at the last position of the longest cache, on a GPU of so many
    multiprocessors."""
    c = spec.constants
    config = GPTConfig(vocab_size=c["V"], n_ctx=c["X"], n_embd=c["C"], n_head=c["C"] // COLUMNS, n_layer=c["L"])
    sizes = dims(spec.op, TEXTS if spec.op in OPS_TEXTS else 1, config, c["V"], c["X"], sms)
    return Case(spec.op, sizes, "a variant of the step")


def at_the_end(inputs: Inputs) -> Inputs:
    """All texts where the first one is, at the last position, over keys and values as it has them."""
    if len(inputs.arrays["positions"]) > 1:
        inputs.arrays["positions"][:] = inputs.arrays["positions"][0]
        inputs.outputs["cache"][:, :, 1:] = inputs.outputs["cache"][:, :, :1]  # (L, 2, N, P, C)
    return inputs


def measured(
    bundle: Bundle, entry: BundleEntry, case: Case, inputs: Inputs, expected: Expected, executor: Executor
) -> dict[str, Any]:
    """Checks an entry's results, then times it. Raises ConformanceError for a wrong result."""
    launcher, buffers = EntryLauncher(executor), upload(case, inputs, executor)

    def launch() -> None:
        launcher(bundle, entry, {**buffers, **inputs.scalars})

    error = 0.0
    for _ in range(2):
        launch()
        for name, pair in expected.items():
            found = verdict(case.op, DTYPE, name, buffers[name].numpy(), *pair)
            if not found.error <= found.bound:
                raise ConformanceError(f"{name} is off by {found.error:.2g}, over {found.bound:.2g}")
            error = max(error, found.share)
    first = buffers["logits"].numpy()
    with executor.capture() as graph:
        for _ in range(LAUNCHES):
            launch()
    times = [time / LAUNCHES for time in executor.times_us(graph.replay, REPLAYS)]
    if not np.array_equal(first, buffers["logits"].numpy()):
        raise ConformanceError("another launch has other bits")
    found_us = {"us": statistics.median(times), "least": min(times), "most": max(times)}
    return {"share_of_bound": round(error, 3), **{key: round(time, 2) for key, time in found_us.items()}}


if __name__ == "__main__":
    raise SystemExit(command.run(main, set_up="on a GPU it needs cuda-bindings, see docs/benchmarks.md"))

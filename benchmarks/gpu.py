"""The command `gpu`: checks our kernels and PyTorch's in one process on one GPU, then times them in turns. Results are
saved after every case."""

from __future__ import annotations

import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from conformance.results import origin
from toolchain.bundles import checkout
from toolchain.bundles.bundle import Bundle
from toolchain.errors import DeviceError, UsageError
from toolchain.runtime import Executor, driver, open_executor, smi

from .cases.cases import CASES, Case, DecodeCase, ForwardCase, OpCase
from .cases.options import Options
from .harness import apart, decode, environment, forward, ops
from .harness.harness import Outcome, floor, rows
from .harness.kernels import Kernels, choose
from .harness.models import Zoo
from .harness.rig import Rig, open_rig
from .harness.status import exit_code
from .peers.pytorch import torch
from .peers.torch_side import TorchSide, measure_ceilings
from .report.result import BenchmarkRow, Results, mark_best
from .report.table import headline, summary, table


def chosen(options: Options, cases: Sequence[Case] = CASES) -> list[Case]:
    """The cases asked for. Raises UsageError if there are none."""
    found = [case for case in cases if case.group in options.only and options.case.search(case.name)]
    if not found:
        raise UsageError(
            f"no case of {', '.join(options.only)} matches {options.case.pattern!r}",
            hint="python -m benchmarks list shows all",
        )
    return found


def say(text: str) -> None:
    print(text, flush=True)


def run(options: Options) -> int:
    """Measure the chosen cases. Returns the exit code: that of ConformanceError if an output was wrong, 1 if a kernel
    of ours did not run or is slower than `at_least` allows."""
    cases = chosen(options)
    bundle = Bundle.load(options.bundle)
    others = {name: Bundle.load(folder, bundle.policies) for name, folder in options.against.items()}
    kernels = choose(bundle, others, options.sources)
    driver.load()  # so that a missing GPU is reported once, not by each process
    # Asked only once, because files that a run with several processes writes would change the answer.
    options = replace(options, tree=options.tree or checkout.commit(bundle.root))
    if len(found := apart.parts(cases, options.peers)) > 1:
        return apart.run(options, found)
    with open_executor("cuda") as executor:
        side = TorchSide(f"cuda:{executor.device[1]}")
        uuid = _smi_name(side)
        ceilings = measure_ceilings(side)
        copied, computed = ceilings.bytes_per_s / 1e12, ceilings.flops_per_s / 1e12
        say(f"{executor.name}: copy {copied:.2f} TB/s, bf16 {computed:.0f} TFLOP/s")
        results = Results(
            environment.describe(bundle, others, _gpu(executor, side, uuid), options.tree),
            vars(ceilings),
            [],
            origin.describe(bundle, [executor], options.words, options.tree),
        )
        rig = open_rig(executor, kernels, side, ceilings, options, say)
        return measure_all(rig, cases, results, options, uuid)


def measure_all(rig: Rig, cases: Sequence[Case], results: Results, options: Options, uuid: str) -> int:
    """Every case; saves after each."""
    path, zoo, started = options.output / results.file_name, Zoo(rig), time.perf_counter()
    for number, case in enumerate(cases, 1):
        elapsed = time.perf_counter() - started
        if options.stop_after_s and elapsed > options.stop_after_s:
            say(f"stopped after {elapsed:.0f} s: {len(cases) - number + 1} of {len(cases)} cases are not measured")
            break
        say(f"[{number}/{len(cases)}] {case.name}")
        made = measure(rig, zoo, case, uuid)
        for row in headline(made):
            say(f"  = {summary(row)}")
        results = _ran(_with(results, made), rig, made)
        results.save(path)
        if not rig.torch.healthy():
            say("the device is lost: no further case can run in this process")
            break
        rig.torch.release()
    say("")
    say(table(results))
    if results.rows:
        say(f"wrote {path}")
    slower = results.slower(options.at_least)
    for row in slower:
        say(f"not {options.at_least:g} times as fast as {row.peer}: {row.case}: {row.detail or summary(row)}")
    return exit_code(results, slower)


def measure(rig: Rig, zoo: Zoo, case: Case, uuid: str) -> list[BenchmarkRow]:
    """The rows of one case, with the GPU's state before and after it. Failures are recorded in the rows."""
    before = smi.read(uuid)
    sizes: dict[str, int] = {}
    least: dict[str, Any] = {}
    try:
        least = floor(case, rig.ceilings)
        match case:
            case OpCase():
                outcomes = ops.measure(rig, case)
            case ForwardCase():
                models = zoo.get(case.config, case.dtype)
                outcomes = forward.measure(rig, models, case)
                sizes["model_bytes"] = models.bytes
            case DecodeCase():
                outcomes = decode.measure(rig, zoo.get(case.config, case.dtype), case)
    except Exception as error:  # noqa: BLE001 - inputs or the reference of this case: the other cases can run
        say("".join(traceback.format_exception(error)).rstrip())
        outcomes = [Outcome(maker) for maker in rig.makers(_unbuilt)]
        for outcome in outcomes:
            outcome.fail("error", error)
    return rows(case, outcomes, least, gpu_before=before, gpu_after=smi.read(uuid), **sizes)


def _unbuilt(_: Kernels) -> Any:
    raise DeviceError("never built")


def _with(results: Results, made: Sequence[BenchmarkRow]) -> Results:
    """The results with more rows, and with the range of clocks seen so far."""
    everything = mark_best([*results.rows, *made])
    readings: list[Mapping[str, str]] = [r for row in everything for r in (row.gpu_before, row.gpu_after)]
    seen: dict[str, Any] = {**results.environment, "sm_clock_mhz": smi.clock_range(readings)}
    return replace(results, environment=seen, rows=everything)


def _ran(results: Results, rig: Rig, made: Sequence[BenchmarkRow]) -> Results:
    """The results with the kernels of the measured bundle that ran so far, and the GPU's state after these rows."""
    if results.origin is None:
        return results
    own = {file.sha256 for entry in rig.kernels[0].bundle.entries for file in entry.cubins.values()}
    ran = [kernel for kernel in rig.executor.ran if kernel.sha256 in own]
    devices = [{**device, "after": made[-1].gpu_after} if made else device for device in results.origin.devices]
    return replace(results, origin=replace(results.origin, devices=devices).with_kernels(ran))


def _smi_name(side: TorchSide) -> str:
    """The name of our GPU for nvidia-smi: its UUID if nvidia-smi accepts it, because it numbers GPUs differently."""
    uuid = f"GPU-{torch.cuda.get_device_properties(side.device).uuid}"
    return uuid if smi.read(uuid) else str(side.device.index)


def _gpu(executor: Executor, side: TorchSide, uuid: str) -> dict[str, Any]:
    properties = torch.cuda.get_device_properties(side.device)
    driver = smi.query(["driver_version"], uuid)
    return {
        "gpu": properties.name,
        "target": executor.target,
        "sms": executor.sms,
        "l2_bytes": side.l2_bytes,
        "memory_bytes": properties.total_memory,
        "driver": driver[0] if driver else "",
        "cuda": torch.version.cuda,
        "cudnn": str(torch.backends.cudnn.version()),
    }

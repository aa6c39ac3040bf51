"""Which of several GPUs take part in a run: one that is not well would make its share of the rows wrong or slow."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from toolchain.errors import DeviceError
from toolchain.runtime import smi
from toolchain.runtime.driver import GPU


def well(found: Sequence[GPU], ask: Callable[[GPU], Sequence[str]] | None = None) -> tuple[list[GPU], str]:
    """Those that are fit for a job, and in words which are not and why. The only GPU of a machine is not asked: nothing
    else could run its share. `ask`: the faults of a GPU, by default what ci.runner.health finds.

    Raises DeviceError if none is well."""
    if len(found) < 2:
        return list(found), ""
    if ask is None and shutil.which("nvidia-smi") is None:
        return list(found), "no GPU; their health was not read, because there is no nvidia-smi"
    with ThreadPoolExecutor(len(found)) as pool:  # they wait for nvidia-smi
        faults = dict(zip([gpu.index for gpu in found], map(list, pool.map(ask or faults_of, found)), strict=True))
    taken = [gpu for gpu in found if not faults[gpu.index]]
    words = "; ".join(
        f"cuda:{gpu.index} {gpu.name}: {', '.join(faults[gpu.index])}" for gpu in found if faults[gpu.index]
    )
    if not taken:
        raise DeviceError(
            f"none of {len(found)} GPUs is well: {words}",
            hint="--executor cuda:N takes one as it is; `python3 -m ci.runner health` shows all that was looked at",
        )
    return taken, words


def faults_of(gpu: GPU) -> list[str]:
    """What is wrong with a GPU. What cannot be read is a fault: a lost GPU gives no numbers."""
    from ci.runner import health, table

    address = smi.name_of(gpu.index)
    found = health.faults(health.of_gpu(table.load(), address))
    return [f"{each.subject} {each.found}: {each.fault}" for each in found]

"""A study: the time of kernels that never wait, with and without the search for loops that wait."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from unittest.mock import patch

from toolchain.errors import ToolchainError
from toolchain.tileir.interpreter import Prepared
from toolchain.tileir.interpreter.launches import prepared

from ..harness.interpreter import forwards
from ..harness.measurement import Measurement


def turns(module: str, config_name: str, dtype: str, tokens: int, repeats: int) -> Iterator[Measurement]:
    """What it costs kernels that do not wait that blocks can take turns: the forward pass as it is, and by kernels
    for which no waits were looked for, one after the other in one process. Seconds of the processor, and the ratio of
    each two that ran side by side. Raises ToolchainError if a kernel's code is not the same."""
    times: dict[str, list[float]] = {"waits looked for": [], "not looked for": []}
    look = (prepared.waits, lambda _body: {})  # pyright: ignore[reportUnknownLambdaType]
    kept = tuple(OrderedDict[bytes, Prepared]() for _ in look)
    with forwards(module, config_name, dtype, tokens, (False, False)) as (name, runs):
        for n in range(repeats + 1):  # the first makes the kernels
            for which in (0, 1) if n % 2 else (1, 0):
                with (
                    patch.object(prepared, "waits", look[which]),
                    patch.object(prepared, "_prepared", kept[which]),
                ):
                    took = _once(runs[which])
                if n:
                    times[list(times)[which]].append(took)
    if not kept[0] or kept[0].keys() != kept[1].keys():
        raise ToolchainError("the two forward passes did not run the same kernels, each its own")
    for key, kernels in kept[0].items():
        for symbol in kernels.symbols:
            if kernels.kernel(symbol, False).source != kept[1][key].kernel(symbol, False).source:
                raise ToolchainError(f"{symbol} waits: it is another kernel where waits are looked for")
    for how, found in times.items():
        yield Measurement.of(f"{name}, {how}", "s", found)
    yield Measurement.of(f"{name}, ratio", "", [one / other for one, other in zip(*times.values(), strict=True)])


def _once(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start

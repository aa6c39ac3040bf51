"""An entry of a bundle on the executor: its kernel as text, and the arguments as a launch passes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...contract.artifact import Form
from ...contract.entry import ALIGNMENT, EntrySpec
from .arguments import Arguments, TensorMap
from .launch import Report, launch, of_text
from .memory import GlobalMemory


def launch_entry(
    text: str, spec: EntrySpec, form: Form, arrays: Mapping[str, NDArray[Any]], scalars: Mapping[str, float],
    grid: tuple[int, int, int],
) -> Report:  # fmt: skip
    """Runs the kernel of an entry. `arrays`, `scalars`: by the op's parameters; arrays are changed in place.

    What the entry does not ask for, it does not get: an array lies at a multiple of 16 bytes only if it is `aligned`,
    and its rows have gaps unless it is `contiguous`. Raises a Finding, SourceError or UsageError.
    """
    memory = GlobalMemory()
    bound = Arguments(memory)
    values: list[Any] = []
    for param in spec.params:
        if not param.dims:
            kind = np.int32 if param.dtype == "i32" else np.float32
            values.append(np.array([scalars[param.name]], kind))
            continue
        array = arrays[param.name]
        step = ALIGNMENT if param.name in spec.aligned else array.itemsize
        unit = 0 if param.name in spec.contiguous else step
        values += bound.array(param.name, array, align=step, unit=unit)
    for made in form.maps:
        values.append(bound.tensor_map(made.array, TensorMap(arrays[made.array], made.box, made.swizzle), ALIGNMENT))
    made, resident = of_text(text, spec.symbol), form.together > 0
    return launch(made, values, memory, grid, form.block, form.shared_bytes, resident=resident)

"""GPU kernels in tiles, from Python: `import tilestack as ts`.

    k = ts.load("kernel.mlir")          # a file of Tile IR, a bundle's entry, a cuTile function
    k[(blocks,)](x, y, out)             # numpy, PyTorch, CuPy, DLPack; a GPU, or the interpreter where there is none
    print(k.inspect("sm_90").registers)

docs/python.md shows all of it. Importing this is cheap: each name is loaded when it is first used, and a compiler or a
GPU is looked for when one is needed.

In a checkout the library's packages stand beside this one. In an installed wheel they lie below it, in `_lib`. A
process that imports tilestack finds them from then on: behind the program's own modules, which may have names like
`gpt` or `tune` too, and before what else is installed, such as the `benchmarks` that xdsl brings.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

_HERE = Path(__file__).parent
LIBRARY = str(_HERE / "_lib" if (_HERE / "_lib").is_dir() else _HERE.parent)
sys.path.insert(0, LIBRARY)
importlib.import_module("toolchain")  # needed at any time: ours, even where the program has one
sys.path.pop(0)
_INSTALLED = [i for i, place in enumerate(sys.path) if Path(place).name in ("site-packages", "dist-packages")]
sys.path.insert(min(_INSTALLED, default=len(sys.path)), LIBRARY)

if TYPE_CHECKING:
    from toolchain.errors import (
        BundleError,
        BytecodeError,
        DeviceError,
        LaunchError,
        NoGPU,
        SanitizerError,
        SourceError,
        TilestackError,
        ToolchainError,
        UsageError,
    )

    from .api import distributed
    from .api.arguments.parameters import Parameter
    from .api.kernels.kernel import Kernel, Launch
    from .api.kernels.loading import load
    from .api.kernels.torch_op import torch_op
    from .api.launches.devices import device_name
    from .api.models.gpt import GPT

__all__ = [
    "GPT",
    "BundleError",
    "BytecodeError",
    "DeviceError",
    "Kernel",
    "Launch",
    "LaunchError",
    "NoGPU",
    "Parameter",
    "SanitizerError",
    "SourceError",
    "TilestackError",
    "ToolchainError",
    "UsageError",
    "device_name",
    "distributed",
    "load",
    "torch_op",
]

_HOMES = {
    "GPT": ".api.models.gpt", "Kernel": ".api.kernels.kernel", "Launch": ".api.kernels.kernel",
    "Parameter": ".api.arguments.parameters", "device_name": ".api.launches.devices",
    "distributed": ".api.distributed", "load": ".api.kernels.loading", "torch_op": ".api.kernels.torch_op",
}  # fmt: skip
_MODULES = {"distributed"}  # names that are modules themselves


if not TYPE_CHECKING:  # a type checker then takes a name that does not exist for an error

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        home = importlib.import_module(_HOMES.get(name, "toolchain.errors"), __name__)
        found = globals()[name] = home if name in _MODULES else getattr(home, name)
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _interpret() -> None:
    """Makes this process's cuTile launches run on the interpreter, if TILESTACK_INTERPRET says so."""
    from toolchain import knobs

    if (chosen := knobs.interpret()) is not None:
        from toolchain import emulation
        from toolchain.emulation.settings import parse

        emulation.start(parse(chosen))


_interpret()

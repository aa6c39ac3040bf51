"""cuTile programs that nobody changed, on a CPU: every `ct.launch` runs on the interpreter of Tile IR.

cuTile's own launch path stays as it is, with its C extension, its signatures and its compiler front end. Below it
stands a CUDA driver of ours (driver.py): where a cubin would be loaded it gets the kernel's bytecode, and a launch runs
it (launch.py) on the memory that the arguments lie in (storages.py). Above it PyTorch's CPU tensors pose as CUDA ones
(torch_mode.py, torch_cuda.py), and arrays of numpy and of DLPack pass as arguments (arrays.py).

`start` only sets hooks on the imports of cuTile and PyTorch (imports.py), so that a process which uses neither pays
nothing.
"""

from __future__ import annotations

from types import ModuleType

from .imports import when_imported
from .settings import Settings

__all__ = ["Settings", "start", "started"]

_settings: Settings | None = None


def started() -> Settings | None:
    """What this process emulates; None if it does not."""
    return _settings


def start(settings: Settings) -> None:
    """Makes every launch of this process run on the interpreter, from here on. A second call before cuTile and PyTorch
    are imported replaces the settings, and later has no effect."""
    global _settings
    first, _settings = _settings is None, settings
    if first:
        when_imported("cuda.tile", _below_cutile)
        when_imported("cuda.tile.jax", _instead_of_jax)
        when_imported("torch", _over_torch)


def _below_cutile(_: ModuleType) -> None:
    from . import cutile

    assert _settings is not None
    cutile.install(_settings)


def _instead_of_jax(module: ModuleType) -> None:
    from . import cutile

    cutile.refuse_jax(module)


def _over_torch(_: ModuleType) -> None:
    from . import torch_cuda

    assert _settings is not None
    torch_cuda.install(_settings)

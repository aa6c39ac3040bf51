"""cuTile's own way of a launch, with our driver below it. All of cuTile's private names that we replace stand here."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import ToolchainError, UsageError
from .arrays import passed
from .driver import Driver, image
from .places import at_source
from .settings import Settings

KNOWN = ("1.7.",)  # the versions of cuTile whose names these are, by their beginning
_DRIVER = "cuda.tile._load_libcuda"
REPLACED = {
    "cuda.tile._cext": ("launch", "launch_extended", "_benchmark"),
    "cuda.tile._compile": (
        "compile_cubin", "_get_compiler_version_string", "_get_max_supported_bytecode_version", "_SUPPORTED_VERSIONS",
    ),
    "cuda.tile.tune._tune": ("exhaustive_search", "_benchmark"),
    "cuda.tile.tune._tune_utils": ("_benchmark",),
}  # fmt: skip

_driver: Driver | None = None


def driver() -> Driver | None:
    """The driver that launches of this process go to, once cuTile has been imported."""
    return _driver


def install(settings: Settings) -> None:
    """Puts our driver below cuTile. Raises ToolchainError for a cuTile whose private names we do not know."""
    global _driver
    check()
    _driver = Driver(settings)
    module = ModuleType(_DRIVER)
    vars(module).update(
        cuGetProcAddress_v2_ptrptr=_driver.get_address_pointer, _cuGetProcAddress_v2=_driver.get_address
    )
    sys.modules[_DRIVER] = module
    extension, public = importlib.import_module("cuda.tile._cext"), importlib.import_module("cuda.tile")
    for name, first in (("launch", 3), ("launch_extended", 4)):
        wrapped = _launching(_driver, getattr(extension, name), first)
        if getattr(public, name, None) is getattr(extension, name):
            setattr(public, name, wrapped)
        setattr(extension, name, wrapped)
    _compile_to_bytecode(importlib.import_module("cuda.tile._compile"))
    _take_first_configuration(extension)


def check() -> None:
    """Raises ToolchainError unless all that we replace is there, in a version that we know."""
    public = importlib.import_module("cuda.tile")
    version = str(getattr(public, "__version__", "of no version"))
    missing = [] if importlib.util.find_spec(_DRIVER) else [_DRIVER]
    for name, attributes in REPLACED.items():
        try:
            module = importlib.import_module(name)
        except ImportError:
            missing.append(name)
            continue
        missing += [f"{name}.{attribute}" for attribute in attributes if not hasattr(module, attribute)]
    if missing or not version.startswith(KNOWN):
        known = ", ".join(f"{each}x" for each in KNOWN)
        lacking = f"; it lacks {', '.join(missing)}" if missing else ""
        raise ToolchainError(
            f"cuda-tile {version} cannot run on the interpreter, which replaces private names of cuda-tile {known}"
            f"{lacking}",
            hint=f"pip install 'cuda-tile=={KNOWN[-1]}*'",
        )


def _launching(driver: Driver, real: Callable[..., Any], first: int) -> Callable[..., Any]:
    """A launch whose array arguments, from position `first` on, may lie in the host's memory, and whose errors are the
    interpreter's."""

    @functools.wraps(real)
    def launch(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        try:
            with driver.call():
                given = tuple(passed(each, driver.storages) for each in args[first:])
                return real(*args[:first], *given, **kwargs)
        except BaseException as error:
            located = at_source(error)
            if located is error and error.__traceback__ is not None and getattr(error, "place", None) is None:
                raise
            raise located from None

    return launch


def _compile_to_bytecode(module: ModuleType) -> None:
    """A kernel's bytecode is its binary. No compiler is needed, and none of its cached cubins is mistaken for ours."""

    def compile_cubin(fname_bytecode: str, *_: Any, **__: Any) -> Path:
        path = Path(fname_bytecode)
        made = path.with_suffix(".cubin")
        made.write_bytes(image(path.read_bytes()))
        return made

    def newest(*_: Any, **__: Any) -> Any:
        return vars(module)["_SUPPORTED_VERSIONS"][-1]

    vars(module).update(
        compile_cubin=compile_cubin,
        _get_compiler_version_string=lambda: "the interpreter of tilestack",
        _get_max_supported_bytecode_version=newest,
    )


def _take_first_configuration(extension: ModuleType) -> None:
    """Times on the interpreter say nothing of a GPU, so the autotuner tries one configuration, as if in 1 µs."""
    search = importlib.import_module("cuda.tile.tune._tune")
    real = search.exhaustive_search

    def benchmark(stream: Any, grid: Any, kernel: Any, arguments: Any, *_: Any) -> float:
        vars(extension)["launch"](stream, grid, kernel, arguments)
        return 1.0

    def unmeasured(*_: Any) -> float:
        return 1.0

    @functools.wraps(real)
    def exhaustive_search(search_space: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        kwargs["single_run_timeout_sec"] = None  # what is timed is nothing
        return real(list(search_space)[:1], *args, **kwargs)

    vars(extension)["_benchmark"] = benchmark
    for module in (search, importlib.import_module("cuda.tile.tune._tune_utils")):
        vars(module)["_benchmark"] = unmeasured
    for module in (search, importlib.import_module("cuda.tile.tune")):
        vars(module)["exhaustive_search"] = exhaustive_search


def refuse_jax(module: ModuleType) -> None:
    """JAX launches kernels from compiled code of a GPU."""

    def refuse(*_: Any, **__: Any) -> None:
        raise UsageError("JAX launches cuTile kernels on a GPU only, not on the interpreter")

    for name in getattr(module, "__all__", ()):
        if callable(getattr(module, name)):
            setattr(module, name, refuse)

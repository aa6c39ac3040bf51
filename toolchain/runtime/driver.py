"""The CUDA driver API: loading it, choosing a cubin, and turning its status codes into errors."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from ..contract.targets import targets
from ..errors import DeviceError, DriverTooOld, NoGPU, OutOfMemory, WrongTarget
from ..pinned.compatibility import driver_fits, table

CUBINS = 13  # the CUDA major release of the tileiras that makes our cubins
_UPGRADE = f"install NVIDIA driver {table().min_driver(CUBINS).minimum} or newer, or run on the CPU"
_ON_CPU = "run on the CPU instead, or check that `nvidia-smi` lists a GPU here"

_OUT_OF_MEMORY = 2
_NO_DEVICE = 100
_NO_BINARY = 209
_TOO_OLD = {36, 222, 803, 804}  # needs newer driver, unsupported PTX version, driver mismatch, no compatibility mode
# After one of these every later call of the process on this device fails with the same code.
_STICKY = {
    214, 220, 226, 700, 702, 708, 709, 710, 714, 715, 716, 717, 718, 719,
}  # fmt: skip


@dataclass(frozen=True)
class GPU:
    """A device, by the driver's number."""

    index: int
    name: str
    compute_capability: tuple[int, int]
    sms: int
    memory: int  # bytes

    @property
    def target(self) -> str:
        major, minor = self.compute_capability
        return f"sm_{major}{minor}"

    @property
    def overlaps(self) -> bool:
        """True if a launch may begin before the previous one ends (programmatic dependent launch)."""
        return self.compute_capability >= (9, 0)


@functools.cache
def load() -> ModuleType:
    """cuda.bindings.driver, initialised. Raises NoGPU or DriverTooOld."""
    try:
        driver = importlib.import_module("cuda.bindings.driver")
    except ImportError as error:
        raise NoGPU(f"cuda-bindings cannot be imported: {error}", hint="pip install cuda-bindings") from error
    try:
        (status,) = driver.cuInit(0)
    except RuntimeError as error:  # cuda-bindings raises it if there is no libcuda
        raise NoGPU(f"no NVIDIA driver on this machine: {error}", hint=_ON_CPU) from error
    if int(status):
        raise error_of("cuInit", status, "")
    check_driver(offered(driver))
    return driver


def check_driver(cuda: tuple[int, int]) -> None:
    """Raises DriverTooOld if a driver that offers this CUDA version cannot run our cubins."""
    if (misfit := driver_fits(cuda, CUBINS)) is not None:
        raise DriverTooOld(misfit.pair, hint=misfit.next)


def offered(driver: Any) -> tuple[int, int]:
    """The CUDA version that the driver offers."""
    version: int = check("cuDriverGetVersion", driver.cuDriverGetVersion())
    return version // 1000, version % 1000 // 10


def refused(error: DeviceError, gpu: GPU, target: str, cuda: tuple[int, int]) -> DeviceError:
    """An error of loading a cubin, with the pair that does not fit: the cubin and the GPU, or the cubin and the driver.
    Another error is returned as it is."""
    major, minor = gpu.compute_capability
    here = f"{gpu.name} has compute capability {major}.{minor}"
    if isinstance(error, WrongTarget):
        return WrongTarget(
            f"this cubin for {target} does not run on {gpu.target}, {here}: {error.args[0]}",
            hint=f"compile the bundle again with --target {gpu.target}",
        )
    if isinstance(error, DriverTooOld):
        return DriverTooOld(
            f"the driver offers CUDA {cuda[0]}.{cuda[1]}, which does not load this cubin for {target} "
            f"(needs driver {table().min_driver(CUBINS).minimum} or newer); {here}: {error.args[0]}",
            hint=_UPGRADE,
        )
    return error


def check(call: str, result: tuple[Any, ...], doing: str = "") -> Any:
    """The value in the result `(status, *values)` of a driver call. Raises the DeviceError for its status. `doing`: the
    purpose of the call, for the error's message."""
    status, *values = result
    if int(status):
        raise error_of(call, status, doing)
    return values[0] if len(values) == 1 else tuple(values)


def error_of(call: str, status: Any, doing: str) -> DeviceError:
    """The error that a CUresult stands for."""
    error = _error_of(call, status, doing)
    error.code = int(status)
    return error


def _error_of(call: str, status: Any, doing: str) -> DeviceError:
    code, name = int(status), getattr(status, "name", "unknown")
    during = f" while {doing}" if doing else ""
    what = f"{call} failed{during}: {name} ({code})"
    if code == _NO_DEVICE:
        return NoGPU(f"the NVIDIA driver finds no GPU: {what}", hint=_ON_CPU)
    if code in _TOO_OLD:
        return DriverTooOld(f"the NVIDIA driver cannot run this: {what}", hint=_UPGRADE)
    if code == _NO_BINARY:
        return WrongTarget(what, hint="compile the bundle for this GPU's target")
    if code == _OUT_OF_MEMORY:
        return OutOfMemory(what, hint="use a smaller batch, or free buffers first")
    if is_sticky(code):
        return DeviceError(
            f"{what}. An earlier launch caused this; the CUDA context is lost",
            hint="start a new process; run the same launch on the CPU interpreter, whose sanitizer names the access",
        )
    return DeviceError(what)


def is_sticky(code: int) -> bool:
    """True if this error means that the context is lost."""
    return code in _STICKY


def out_of_memory(asked: int, free: int, total: int, where: str) -> OutOfMemory:
    def mib(count: int) -> str:
        return f"{count / 2**20:,.1f} MiB"

    return OutOfMemory(
        f"{where} has no room for {mib(asked)} ({asked} bytes): {mib(free)} free of {mib(total)}",
        hint="use a smaller batch or context, or free buffers first",
    )


def choose_target(gpu: GPU, available: Iterable[str], symbol: str) -> str:
    """The target to run on `gpu`: the closest one among those for which the entry has cubins. Raises WrongTarget."""
    known = targets()
    names = list(available)
    fitting = [known[n] for n in names if n in known and known[n].runs_on(gpu.compute_capability)]
    if not fitting:
        major, minor = gpu.compute_capability
        raise WrongTarget(
            f"{symbol}: the bundle has cubins for {', '.join(names) or 'no target'}; "
            f"{gpu.name} has compute capability {major}.{minor}, which runs none of them",
            hint=f"compile the bundle again with --target {gpu.target}",
        )
    return max(fitting, key=lambda target: target.compute_capability).name


def gpus() -> tuple[GPU, ...]:
    """The GPUs of this machine; none if there is no driver or no device. Raises DriverTooOld for a driver that cannot
    run our cubins: such a machine has to be repaired, and does not count as one without a GPU."""
    try:
        driver = load()
    except NoGPU:
        return ()
    count: int = check("cuDeviceGetCount", driver.cuDeviceGetCount())
    return tuple(describe(driver, index) for index in range(count))


def describe(driver: Any, index: int) -> GPU:
    device = check("cuDeviceGet", driver.cuDeviceGet(index))
    attributes = driver.CUdevice_attribute

    def attribute(key: Any) -> int:
        return check("cuDeviceGetAttribute", driver.cuDeviceGetAttribute(key, device))

    name: bytes = check("cuDeviceGetName", driver.cuDeviceGetName(128, device))
    return GPU(
        index=index,
        name=name.split(b"\0", 1)[0].decode(),
        compute_capability=(
            attribute(attributes.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
            attribute(attributes.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
        ),
        sms=attribute(attributes.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
        memory=check("cuDeviceTotalMem", driver.cuDeviceTotalMem(device)),
    )

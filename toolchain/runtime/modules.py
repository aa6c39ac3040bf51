"""Loading: from a cubin or PTX to the driver's handle of a kernel. All of our launches go through here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from ..errors import DriverTooOld, WrongTarget
from .driver import GPU, offered, refused

if TYPE_CHECKING:
    from ..bundles.bundle import Bundle, BundleEntry

SHARED_UNASKED = 48 * 1024  # bytes of dynamic shared memory that every kernel may have


class Device(Protocol):
    """What loading needs of an executor: its GPU, the driver's types, calls in its context, and their undoing."""

    gpu: GPU

    @property
    def driver(self) -> Any: ...
    def ask(self, call: str, *args: Any, doing: str = "") -> Any: ...
    def undo(self, call: str, handle: Any) -> None: ...


def load_module(device: Device, image: bytes, doing: str, target: str | None = None) -> Any:
    """A cubin, or PTX with a zero byte at its end, as the driver's module. It is unloaded with the executor. Raises
    DeviceError; WrongTarget or DriverTooOld, which for an image of a known `target` name the pair that does not fit."""
    try:
        module = device.ask("cuModuleLoadData", image, doing=doing)
    except (WrongTarget, DriverTooOld) as error:
        if target is None:
            raise
        raise refused(error, device.gpu, target, offered(device.driver)) from error
    device.undo("cuModuleUnload", module)
    return module


def get_function(device: Device, module: Any, symbol: str, shared_bytes: int, doing: str) -> Any:
    """A kernel of a module, whose blocks may have `shared_bytes` of dynamic shared memory. Raises DeviceError."""
    function = device.ask("cuModuleGetFunction", module, symbol.encode(), doing=doing)
    allow_shared(device, function, shared_bytes, doing)
    return function


def allow_shared(device: Device, function: Any, nbytes: int, doing: str) -> None:
    """Lets each block of a kernel have so many bytes of dynamic shared memory. Raises DeviceError."""
    if nbytes > SHARED_UNASKED:
        limit = device.driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        device.ask("cuFuncSetAttribute", function, limit, nbytes, doing=doing)


class Modules:
    """The modules of a bundle's cubins. Each is loaded once. The caller holds the executor's lock."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}  # by the cubin's sha256

    def clear(self) -> None:
        self._loaded.clear()

    def function(self, device: Device, bundle: Bundle, entry: BundleEntry, target: str) -> Any:
        """The kernel of an entry, from its cubin for a target. Raises what `load_module` does."""
        cubin, symbol = entry.cubins[target], entry.spec.symbol
        doing = f"loading {symbol} from {cubin.path}"
        if cubin.sha256 not in self._loaded:
            self._loaded[cubin.sha256] = load_module(device, bundle.read(cubin), doing, target)
        return get_function(device, self._loaded[cubin.sha256], symbol, entry.form.shared_bytes, doing)

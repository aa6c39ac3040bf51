"""The cubins that an executor has loaded, as the driver's modules, and their functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from ..errors import DriverTooOld, WrongTarget
from .driver import GPU, offered, refused

if TYPE_CHECKING:
    from ..bundles.bundle import Bundle, BundleEntry, FileRef

_SHARED_UNASKED = 48 * 1024  # bytes of dynamic shared memory that every kernel may have


class Device(Protocol):
    """What loading needs of an executor: its GPU, the driver's types, calls in its context, and their undoing."""

    gpu: GPU

    @property
    def driver(self) -> Any: ...
    def ask(self, call: str, *args: Any, doing: str = "") -> Any: ...
    def undo(self, call: str, handle: Any) -> None: ...


class Modules:
    """Each cubin is loaded once and unloaded with the executor. The caller holds the executor's lock."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}  # by the cubin's sha256

    def clear(self) -> None:
        self._loaded.clear()

    def function(self, device: Device, bundle: Bundle, entry: BundleEntry, target: str) -> Any:
        """The kernel of an entry, from its cubin for a target. Raises WrongTarget or DriverTooOld that names the pair
        that does not fit, and DeviceError."""
        cubin, symbol = entry.cubins[target], entry.spec.symbol
        doing = f"loading {symbol} from {cubin.path}"
        if cubin.sha256 not in self._loaded:
            self._loaded[cubin.sha256] = self._load(device, bundle, cubin, target, doing)
        function = device.ask("cuModuleGetFunction", self._loaded[cubin.sha256], symbol.encode(), doing=doing)
        if entry.form.shared_bytes > _SHARED_UNASKED:
            limit = device.driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            device.ask("cuFuncSetAttribute", function, limit, entry.form.shared_bytes, doing=doing)
        return function

    def _load(self, device: Device, bundle: Bundle, cubin: FileRef, target: str, doing: str) -> Any:
        try:
            module = device.ask("cuModuleLoadData", bundle.read(cubin), doing=doing)
        except (WrongTarget, DriverTooOld) as error:
            raise refused(error, device.gpu, target, offered(device.driver)) from error
        device.undo("cuModuleUnload", module)
        return module

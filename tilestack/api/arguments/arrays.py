"""Array: what a launch must know of an array, whichever library it is of. Nothing is copied here.

No library but numpy is imported: an array of PyTorch or CuPy can only be given by who has imported it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from toolchain.errors import LaunchError, UsageError
from toolchain.runtime import dlpack
from toolchain.runtime.layout import contiguous_strides

# Names of element types in Python's libraries, and in Tile IR, which does not tell signed integers from others.
DTYPES = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "float8_e4m3fn": "f8E4M3FN",
    "float8_e5m2": "f8E5M2", "float8_e8m0fnu": "f8E8M0FNU", "bool": "i1",
    **{f"{sign}int{bits}": f"i{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}  # fmt: skip
SAME = {"tf32": "f32"}  # element types of kernels that are stored as another
_ITEMSIZE = {name: np.dtype(getattr(ml_dtypes, name, name)).itemsize for name in DTYPES}
_DLPACK = {  # by DLPack's type code and bits
    **{(0, bits): f"int{bits}" for bits in (8, 16, 32, 64)}, **{(1, bits): f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{(2, bits): f"float{bits}" for bits in (16, 32, 64)}, (4, 16): "bfloat16", (6, 8): "bool",
    (10, 8): "float8_e4m3fn", (12, 8): "float8_e5m2", (14, 8): "float8_e8m0fnu",
}  # fmt: skip
_ELSEWHERE = {"float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "bfloat16"}  # of these numpy has none


@dataclass(frozen=True)
class Array:
    """An array on a device.

    `dtype`: as Tile IR spells it; `name`: as numpy and PyTorch do. `strides`: in elements. `device`: None for the
    host's memory, else the number of the GPU. `host`: a numpy array of the same memory, if it is the host's.
    `stream`: the CUDA stream on which its owner works, as the driver's handle; None if the owner names none. `keep`:
    what must live as long as the launch runs. `release`: called after the launch. `settled`: the owner will not wait
    for our work, so the launch must end first. `in_place`: of the host's memory, but seen by the kernel where it lies.
    """

    name: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    address: int
    device: int | None
    writeable: bool = True
    host: np.ndarray[Any, Any] | None = None
    stream: int | None = None
    torch: bool = False
    keep: object = None
    release: Callable[[], None] | None = None
    settled: bool = False
    in_place: bool = False

    @property
    def dtype(self) -> str:
        return DTYPES[self.name]

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return _ITEMSIZE[self.name]

    @property
    def byte_strides(self) -> tuple[int, ...]:
        return tuple(stride * self.itemsize for stride in self.strides)

    @property
    def contiguous(self) -> bool:
        """Whether its elements lie in row-major order, without gaps."""
        wanted = contiguous_strides(self.shape)
        return 0 in self.shape or all(
            stride == want for size, stride, want in zip(self.shape, self.strides, wanted, strict=True) if size > 1
        )

    @property
    def packed(self) -> bool:
        """Whether a kernel sees it without gaps, at a multiple of 256 bytes, wherever it lies."""
        return self.device is None and not self.in_place

    @property
    def span(self) -> range:
        """The addresses from its first byte to its last. Strides are not negative where this is asked."""
        if 0 in self.shape:
            return range(self.address, self.address)
        reach = sum((size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True))
        return range(self.address, self.address + (reach + 1) * self.itemsize)

    @property
    def place(self) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
        """Arrays of the same place are the same."""
        return self.address, self.shape, self.strides

    def __str__(self) -> str:
        where = "the host" if self.device is None else f"cuda:{self.device}"
        return f"{self.dtype}{list(self.shape)} on {where}"


def is_array(arg: object) -> bool:
    """Whether an argument is an array, not a number."""
    return not isinstance(arg, bool | int | float | np.generic) and (
        isinstance(arg, np.ndarray) or hasattr(arg, "__dlpack__") or _cuda_interface(arg) is not None
    )


def view(arg: Any, what: str, stream: int | None = None) -> Array:
    """An array of any library. `what`: the words for it in an error. `stream`: where the launch will run, for libraries
    that make an array ready there. Raises LaunchError for what no kernel can take."""
    if isinstance(arg, np.ndarray):
        return _numpy(arg, what)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(arg, torch.Tensor):
        return _torch(arg, torch, what)
    if (row := _cuda_interface(arg)) is not None:
        return _cuda(arg, row, what)
    if not hasattr(arg, "__dlpack__"):
        raise LaunchError(f"{what} is a {type(arg).__name__}: neither an array nor a number")
    return _dlpack(arg, what, stream)


def _cuda_interface(arg: Any) -> dict[str, Any] | None:
    return getattr(arg, "__cuda_array_interface__", None)


def _known(name: str, what: str) -> str:
    """The name of an element type. Raises LaunchError for one that no kernel has."""
    if name not in DTYPES:
        raise LaunchError(f"{what} is of {name}, which no kernel takes", hint=f"one of {', '.join(DTYPES)}")
    return name


def _numpy(array: np.ndarray[Any, Any], what: str, *, writeable: bool = True) -> Array:
    if not array.dtype.isnative or not array.flags.aligned:
        raise LaunchError(f"{what} is not aligned, or of another machine's byte order", hint="copy it first")
    name = _known(array.dtype.name, what)
    strides = tuple(stride // array.itemsize for stride in array.strides)
    can_write = writeable and array.flags.writeable
    return Array(name, array.shape, strides, array.ctypes.data, None, can_write, host=array, keep=array)


def _torch(tensor: Any, torch: Any, what: str) -> Array:
    if type(tensor).__name__ == "FakeTensor" or tensor.device.type == "meta":
        hint = "inside torch.compile call the kernel through its as_torch_op()"
        raise LaunchError(f"{what} is a tensor without memory", hint=hint)
    if tensor.layout != torch.strided or tensor.is_conj() or tensor.is_neg() or tensor.is_quantized:
        raise LaunchError(
            f"{what} is a sparse, quantized, conjugated or negated tensor", hint=".clone() or .to_dense()"
        )
    name = _known(str(tensor.dtype).removeprefix("torch."), what)
    shape, strides = tuple(tensor.shape), tuple(tensor.stride())
    kind, index = tensor.device.type, tensor.device.index
    if kind == "cpu":
        bits = tensor.detach()
        if name in _ELSEWHERE:
            bits = bits.view(torch.int16 if name == "bfloat16" else torch.uint8).numpy().view(getattr(ml_dtypes, name))
        else:
            bits = bits.numpy()
        return Array(name, shape, strides, tensor.data_ptr(), None, host=bits, torch=True, keep=tensor)
    if kind != "cuda":
        raise LaunchError(f"{what} is on {tensor.device}: a kernel takes tensors of a CPU or a CUDA GPU")
    stream = torch_stream(torch, index)
    return Array(name, shape, strides, tensor.data_ptr(), index, stream=stream, torch=True, keep=tensor)


def torch_stream(torch: Any, index: int) -> int:
    """The handle of PyTorch's current stream on a GPU. Its public function makes an object for it each time, which
    takes several times as long as the function below that PyTorch generates calls of."""
    quick = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # noqa: SLF001 - a PyTorch without CUDA has none
    return int(torch.cuda.current_stream(index).cuda_stream if quick is None else quick(index))


def _cuda(arg: Any, row: dict[str, Any], what: str) -> Array:
    """An array of CuPy, or another with `__cuda_array_interface__`."""
    if row.get("mask") is not None:
        raise LaunchError(f"{what} is a masked array")
    numpy_dtype = np.dtype(row["typestr"])
    name = _known(getattr(getattr(arg, "dtype", None), "name", None) or numpy_dtype.name, what)
    shape, steps = tuple(row["shape"]), row.get("strides")
    strides = contiguous_strides(shape) if steps is None else tuple(step // numpy_dtype.itemsize for step in steps)
    address, read_only = row["data"]
    cupy = sys.modules.get("cupy")
    stream, settled = row.get("stream"), False
    if cupy is not None and isinstance(arg, cupy.ndarray):
        with arg.device:
            stream = int(cupy.cuda.get_current_stream().ptr)
    elif stream in (None, dlpack.LEGACY_STREAM):  # its owner may work on a stream that waits for neither
        settled = True
    device = _device_of(address, arg)
    return Array(name, shape, strides, address, device, not read_only, stream=stream, keep=arg, settled=settled)


def _device_of(address: int, arg: Any) -> int:
    """The number of the GPU whose memory an address is in."""
    if (device := getattr(getattr(arg, "device", None), "id", None)) is not None:
        return int(device)
    if not address:  # an array of no elements
        return 0
    from toolchain.runtime.driver import check, load

    driver = load()
    asked = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    return int(check("cuPointerGetAttribute", driver.cuPointerGetAttribute(asked, address)))


def _dlpack(arg: Any, what: str, stream: int | None) -> Array:
    kind, index = (int(number) for number in arg.__dlpack_device__())
    if kind == dlpack.CPU:
        try:
            return _numpy(np.from_dlpack(arg), what)
        except (BufferError, RuntimeError, TypeError) as error:
            raise LaunchError(f"{what} cannot be read through DLPack: {error}") from error
    if kind != dlpack.CUDA:
        raise LaunchError(f"{what} is on DLPack device {kind}: a kernel takes arrays of a CPU or a CUDA GPU")
    try:
        found = dlpack.take(arg, (kind, index), dlpack.LEGACY_STREAM if stream is None else stream, _DLPACK)
    except UsageError as error:
        raise LaunchError(f"{what}: {error.args[0]}", hint=error.hint) from error
    return Array(
        found.dtype, found.shape, found.strides, found.address, index, keep=arg, release=found.release,
        settled=True,
    )  # fmt: skip

"""Arrays to and from other libraries without a copy: DLPack capsules and `__cuda_array_interface__`.

The structures are those of DLPack's dlpack.h, in their unversioned form, which every reader accepts.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..contract.op import ITEMSIZE
from ..errors import UsageError
from .layout import NUMPY, contiguous_strides, dtype_name

CPU, CUDA = 1, 2  # DLPack's device types
LEGACY_STREAM = 1  # CUDA's legacy default stream, in DLPack, in the CUDA array interface and as a driver handle
_CODES = {  # (type code, bits)
    "i8": (0, 8), "i32": (0, 32), "i64": (0, 64), "f32": (2, 32), "f16": (2, 16), "bf16": (4, 16), "f8E4M3FN": (10, 8),
}  # fmt: skip
_NAMES = {code: name for name, code in _CODES.items()}


@dataclass(frozen=True)
class Foreign:
    """Another library's array. `strides`: in elements; `stream`: the one on which its last writer may still run."""

    address: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    release: Callable[[], None]
    stream: int | None = None


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )  # fmt: skip


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter))


# Own prototypes, because attributes set on ctypes.pythonapi's functions would affect every module of the process.
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_SetName", ctypes.pythonapi))
# The destructor gets a capsule whose reference count is zero, so it must take an address and not a Python object.
_dying_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_dying_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_NAME, _USED = b"dltensor", b"used_dltensor"  # at module level, because a capsule keeps the address of its name

# Objects that must live until the reader releases them, by the address of the _Managed.
_given: dict[int, tuple[object, ...]] = {}


@_Deleter
def _delete(managed: int) -> None:
    _given.pop(managed, None)


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def _destroy_capsule(capsule: int) -> None:
    if _dying_is_valid(capsule, _NAME):  # no reader has taken it
        _given.pop(_dying_pointer(capsule, _NAME), None)


def give(
    address: int, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...], device: tuple[int, int], owner: object
) -> object:
    """A DLPack capsule; `owner` is kept until the reader releases it."""
    return give_as(address, _CODES[dtype], shape, strides, device, owner)


def give_as(
    address: int,
    kind: tuple[int, int],
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    device: tuple[int, int],
    owner: object,
) -> object:
    """The same for elements of any `kind`: DLPack's type code and bits."""
    sizes = (ctypes.c_int64 * len(shape))(*shape)
    steps = (ctypes.c_int64 * len(strides))(*strides)
    code, bits = kind
    tensor = _Tensor(address, *device, len(shape), code, bits, 1, sizes, steps, 0)
    managed = _Managed(tensor, None, _delete)
    place = ctypes.addressof(managed)
    _given[place] = (managed, sizes, steps, owner)
    return _new(place, _NAME, ctypes.cast(_destroy_capsule, ctypes.c_void_p))


def tensor_in(capsule: object) -> Any:
    """The structure in an unversioned capsule that nobody has taken: dlpack.h's DLTensor, which can be changed."""
    return ctypes.cast(_pointer(capsule, _NAME), ctypes.POINTER(_Managed)).contents.tensor


def take(
    array: Any, device: tuple[int, int], stream: int | None, names: Mapping[tuple[int, int], str] = _NAMES
) -> Foreign:
    """Reads another library's array on `device` through its `__dlpack__`, ready on our `stream` (None on a CPU).
    `names`: of the element types that can be taken, by DLPack's type code and bits."""
    if not hasattr(array, "__dlpack__"):
        raise UsageError(f"a {type(array).__name__} has no __dlpack__")
    kind, index = array.__dlpack_device__()
    where = (int(kind), int(index))  # some libraries give an enumeration, which compares equal but prints differently
    if where != device:
        raise UsageError(f"the array is on DLPack device {where}, this executor on {device}: copy it there first")
    try:
        capsule = array.__dlpack__() if stream is None else array.__dlpack__(stream=stream)
    except BufferError as error:  # one that cannot be written, for example
        raise UsageError(f"this {type(array).__name__} cannot be shared: {error}", hint="copy it first") from error
    if not _is_valid(capsule, _NAME):
        raise UsageError(f"the capsule of a {type(array).__name__} is not of DLPack's unversioned form, as asked for")
    managed = ctypes.cast(_pointer(capsule, _NAME), ctypes.POINTER(_Managed)).contents
    tensor = managed.tensor
    name = names.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if name is None:
        raise UsageError(
            f"a buffer cannot hold DLPack type code {tensor.code} of {tensor.bits} bits: it can be "
            f"{', '.join(names.values())}"
        )
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else contiguous_strides(shape)
    _reject_negative(strides)
    _rename(capsule, _USED)  # from here on we have to release it

    def release() -> None:
        if managed.deleter:
            managed.deleter(ctypes.addressof(managed))

    return Foreign((tensor.data or 0) + tensor.byte_offset, name, shape, strides, release)


def cuda_array_interface(
    address: int, dtype: str, shape: tuple[int, ...], byte_strides: tuple[int, ...]
) -> dict[str, Any]:
    """Version 3 of the interface, for memory that is ready on the legacy default stream, on which readers work that
    ignore `stream`. Raises AttributeError for bf16, which has no typestr."""
    if dtype == "bf16":
        raise AttributeError("__cuda_array_interface__ cannot express bfloat16: use DLPack")
    return {
        "version": 3,
        "shape": shape,
        "strides": byte_strides,
        "typestr": NUMPY[dtype].str,
        "data": (address, False),
        "stream": LEGACY_STREAM,
    }


def take_cuda_array(array: Any, dtype: str | None) -> Foreign:
    """Reads an object's `__cuda_array_interface__`. `dtype`, such as bf16, overrides a typestr of the same size."""
    row: dict[str, Any] | None = getattr(array, "__cuda_array_interface__", None)
    if row is None:
        raise UsageError(f"a {type(array).__name__} has no __cuda_array_interface__")
    if row.get("mask") is not None:
        raise UsageError("a masked array cannot be a buffer")
    found = np.dtype(row["typestr"])
    name = dtype or dtype_name(found)
    if name not in ITEMSIZE or found.itemsize != ITEMSIZE[name]:
        raise UsageError(f"elements of typestr {row['typestr']!r} cannot be read as {name!r}")
    shape = tuple(row["shape"])
    steps = row.get("strides")
    if steps is not None and any(step % found.itemsize for step in steps):
        raise UsageError(f"byte strides {list(steps)} are not multiples of the element size {found.itemsize}")
    strides = contiguous_strides(shape) if steps is None else tuple(step // found.itemsize for step in steps)
    _reject_negative(strides)
    keep = [array]
    return Foreign(row["data"][0], name, shape, strides, keep.clear, row.get("stream"))


def _reject_negative(strides: tuple[int, ...]) -> None:
    if any(stride < 0 for stride in strides):
        raise UsageError(f"strides {list(strides)}: a negative stride cannot be a buffer; copy the array")

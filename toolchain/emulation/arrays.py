"""Arguments of a launch that lie in the host's memory, as cuTile takes those on a GPU.

cuTile asks an array for a DLPack capsule and refuses one of the host. So an array of numpy, or of another library that
gives its CPU arrays by DLPack, is passed in a wrapper whose capsule says CUDA. Tensors of PyTorch pass as they are: see
torch_mode.py.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from ..errors import LaunchError, UsageError
from ..runtime import dlpack
from ..tileir.interpreter import Storage
from .storages import Storages

# What cuTile takes by numpy's and ml_dtypes' names, in DLPack's (type code, bits).
_DTYPES = {
    "bool": (6, 8), "int8": (0, 8), "int16": (0, 16), "int32": (0, 32), "int64": (0, 64), "uint8": (1, 8),
    "uint16": (1, 16), "uint32": (1, 32), "uint64": (1, 64), "float16": (2, 16), "float32": (2, 32),
    "float64": (2, 64), "bfloat16": (4, 16), "float8_e4m3fn": (10, 8), "float8_e5m2": (12, 8),
    "float8_e8m0fnu": (14, 8),
}  # fmt: skip
_ON_GPU = {"cupy": "CuPy", "numba": "Numba"}


def passed(value: Any, storages: Storages) -> Any:
    """An argument as it is passed on; of a tuple, list or dataclass its parts."""
    if isinstance(value, np.ndarray):
        return _Numpy(value, storages)
    if type(value) in (tuple, list):
        return type(value)(passed(each, storages) for each in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
        changed = {name: new for name, old in fields.items() if (new := passed(old, storages)) is not old}
        return dataclasses.replace(value, **changed) if changed else value
    library = type(value).__module__.partition(".")[0]
    if library in _ON_GPU:
        raise UsageError(
            f"an array of {_ON_GPU[library]} is in a GPU's memory, which the interpreter cannot reach",
            hint="pass a tensor of PyTorch or an array of numpy",
        )
    if library != "torch" and hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        return _OnHost(value, storages)
    return value


class _Numpy:
    """An array of numpy."""

    def __init__(self, array: np.ndarray[Any, Any], storages: Storages) -> None:
        if array.dtype.name not in _DTYPES:
            raise LaunchError(f"cuTile takes no array of {array.dtype}", hint=f"one of {', '.join(_DTYPES)}")
        self._array, self._storages = array, storages

    def __dlpack__(self, **_: Any) -> object:
        array = self._array
        self._storages.note(_storage(array))
        strides = tuple(stride // array.itemsize for stride in array.strides)
        kind = _DTYPES[array.dtype.name]
        return dlpack.give_as(array.ctypes.data, kind, array.shape, strides, (dlpack.CUDA, 0), array)


class _OnHost:
    """Another library's array in the host's memory."""

    def __init__(self, array: Any, storages: Storages) -> None:
        device = array.__dlpack_device__()[0]
        if device != dlpack.CPU:
            what = "JAX" if type(array).__module__.startswith("jax") else type(array).__module__
            raise UsageError(f"an array of {what} is in a GPU's memory, which the interpreter cannot reach")
        self._array, self._storages = array, storages

    def __dlpack__(self, **_: Any) -> object:
        capsule = self._array.__dlpack__()
        self._storages.note(on_cuda(capsule, self._array))
        return capsule


def on_cuda(capsule: object, owner: object) -> Storage:
    """Makes an unversioned capsule say that its array is CUDA's. Returns the bytes that its elements span."""
    tensor = dlpack.tensor_in(capsule)
    tensor.device_type, tensor.device_id = dlpack.CUDA, 0
    itemsize = tensor.bits * tensor.lanes // 8
    sizes = [tensor.shape[d] for d in range(tensor.ndim)]
    if not all(sizes):
        return Storage(0, 0, owner)
    steps = [tensor.strides[d] for d in range(tensor.ndim)] if tensor.strides else []
    if not steps:
        steps = [int(np.prod(sizes[d + 1 :], dtype=np.int64)) for d in range(len(sizes))]
    reach = [(size - 1) * step * itemsize for size, step in zip(sizes, steps, strict=True)]
    low, high = sum(min(0, each) for each in reach), sum(max(0, each) for each in reach)
    start = (tensor.data or 0) + tensor.byte_offset
    return Storage(start + low, high - low + itemsize, owner)


def _storage(array: np.ndarray[Any, Any]) -> Storage:
    """What numpy allocated for an array: that of the array which it is a view of."""
    root = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    low, high = np.lib.array_utils.byte_bounds(root)
    return Storage(low, high - low, root, array.flags.writeable)

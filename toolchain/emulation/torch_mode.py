"""PyTorch's CPU tensors pose as CUDA ones.

Each tensor is marked with the device that it would be on: by the function that makes it, or by what it is made of. All
computing happens on the CPU. A tensor that nothing has marked, because C++ made it, poses as CUDA's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch as _torch  # pyright: ignore[reportMissingImports] - type checking works without it
import torch.overrides as _overrides  # pyright: ignore[reportMissingImports]
import torch.utils._device as _default  # pyright: ignore[reportMissingImports]

from ..runtime import dlpack
from ..tileir.interpreter import Storage
from . import torch_numbers
from .storages import Storages, note_asked

torch: Any = _torch
default: Any = _default
Tensor = Any  # torch.Tensor
Mode: Any = _overrides.TorchFunctionMode

CPU, CUDA = "cpu", "cuda"
MARK = "_tilestack_device"
_GPU = torch.device(CUDA, 0)


def device_of(tensor: Tensor) -> str:
    """Where a tensor poses to be."""
    return getattr(tensor, MARK, CUDA)


def named(device: Any) -> str | None:
    """The kind of device that an argument names; None if it names none that matters here."""
    if device is None:
        return None
    if isinstance(device, bool):
        return None
    if isinstance(device, int):
        return CUDA
    if isinstance(device, str):
        device = device.partition(":")[0]
        return device if device in (CPU, CUDA) else None
    return device.type if isinstance(device, torch.device) and device.type in (CPU, CUDA) else None


class Posing(Mode):
    """Answers what is asked about devices, and passes everything else on to the CPU."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[Any], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        del types
        answer = _ANSWERS.get(func)
        if answer is not None:
            return answer(func, args, kwargs or {})
        return _computed(func, args, dict(kwargs or {}))


def _computed(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    device = named(kwargs.get("device"))
    if device == CUDA:
        kwargs["device"] = CPU
    elif device is None and default.CURRENT_DEVICE is not None and func in default._device_constructors():
        device = named(default.CURRENT_DEVICE)
        kwargs["device"] = CPU
    kwargs.pop("pin_memory", None)
    if differs := device != CPU and torch_numbers.differs(func):
        args, kwargs = torch_numbers.positional(func, args, kwargs)
    if differs and _common(_tensors(args)) == CUDA:
        out = kwargs.pop("out", None)
        result = torch_numbers.computed(func, args, kwargs)
        result = result if out is None else out.copy_(result)
    else:
        result = func(*args, **kwargs)
    tensors = list(_tensors((result,)))
    if tensors:
        mark = device or _common(_tensors((*args, *kwargs.values())))
        for each in tensors:
            setattr(each, MARK, mark)
    return result


def _common(tensors: Iterable[Tensor]) -> str:
    """The device of what is made of these tensors: one of CUDA's prevails over the CPU's, which is then a scalar."""
    found = {device_of(each) for each in tensors}
    return CUDA if CUDA in found else CPU


def _tensors(values: Iterable[Any]) -> Iterable[Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, tuple | list):
            yield from _tensors(value)


# What is asked of a tensor


def _moved(tensor: Tensor, result: Tensor, device: str) -> Tensor:
    """`result` as a tensor on `device`: moving makes a copy, unless the tensor is there already."""
    if result is tensor and device != device_of(tensor):
        result = tensor.clone()
    setattr(result, MARK, device)
    return result


def _to_cuda(_: Any, args: tuple[Any, ...], __: Mapping[str, Any]) -> Tensor:
    return _moved(args[0], args[0], CUDA)


def _to_cpu(_: Any, args: tuple[Any, ...], __: Mapping[str, Any]) -> Tensor:
    return _moved(args[0], args[0], CPU)


def _to(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """Tensor.to: of a device, a dtype or another tensor, each with what may follow it."""
    tensor, *rest = args
    given = dict(kwargs)
    if rest and isinstance(rest[0], torch.Tensor):
        given["other"] = rest[0]
        names = ["other", "non_blocking", "copy"]
    elif rest and isinstance(rest[0], torch.dtype):
        names = ["dtype", "non_blocking", "copy"]
    else:
        names = ["device", "dtype", "non_blocking", "copy"]
    given |= dict(zip(names, rest, strict=False))
    target = named(given.pop("device", None))
    if (other := given.pop("other", None)) is not None:
        target, given["dtype"] = device_of(other), other.dtype
    if given.get("dtype", tensor) is None:
        del given["dtype"]
    result = func(tensor, **given) if given else tensor
    return _moved(tensor, result, target or device_of(tensor))


def _set_data(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    func(*args, **kwargs)
    setattr(args[0], MARK, device_of(args[1]))


def _data_ptr(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    address = func(*args, **kwargs)  # raises for a tensor without a storage, such as a sparse one
    note_asked(args[0], storage_of)
    return address


def _posed_device(_: Any, args: tuple[Any, ...], __: Mapping[str, Any]) -> Any:
    return _GPU if device_of(args[0]) == CUDA else torch.device(CPU)


def _is(device: str) -> Callable[..., bool]:
    def answer(_: Any, args: tuple[Any, ...], __: Mapping[str, Any]) -> bool:
        return device_of(args[0]) == device

    return answer


def _index(_: Any, args: tuple[Any, ...], __: Mapping[str, Any]) -> int:
    return 0 if device_of(args[0]) == CUDA else -1


def _itself(_: Any, args: tuple[Any, ...], __: Mapping[str, Any]) -> Tensor:
    return args[0]


_T = torch.Tensor
_ANSWERS: dict[Any, Callable[..., Any]] = {
    _T.cuda: _to_cuda,
    _T.cpu: _to_cpu,
    _T.to: _to,
    _T.data_ptr: _data_ptr,
    _T.pin_memory: _itself,
    _T.is_pinned: lambda *_: False,
    _T.record_stream: lambda *_: None,
    _T.get_device: _index,
    _T.is_cuda.__get__: _is(CUDA),
    _T.is_cpu.__get__: _is(CPU),
    _T.device.__get__: _posed_device,
    _T.data.__set__: _set_data,
}


# Launches


def storage_of(tensor: Tensor) -> Storage:
    """The memory that a tensor and its views share."""
    with torch._C.DisableTorchFunction():
        storage = tensor.untyped_storage()
        return Storage(storage.data_ptr(), storage.nbytes(), storage)


def capsules(storages: Callable[[], Storages | None]) -> None:
    """Lets cuTile take tensors that pose as CUDA's: it asks PyTorch for a capsule by a private name."""
    real = torch._C._to_dlpack

    def to_dlpack(tensor: Tensor) -> object:
        with torch._C.DisableTorchFunction():
            capsule = real(tensor.detach() if tensor.requires_grad else tensor)
        if device_of(tensor) == CUDA and (noted := storages()) is not None:
            noted.note(storage_of(tensor))
            inside = dlpack.tensor_in(capsule)
            inside.device_type, inside.device_id = dlpack.CUDA, 0
        return capsule

    torch._C._to_dlpack = to_dlpack


def enter() -> None:
    """Makes tensors pose in this thread, and in those that Python starts from now on."""
    Posing().__enter__()
    real = threading.Thread.run

    def run(self: threading.Thread) -> None:
        with Posing():
            real(self)

    threading.Thread.run = run

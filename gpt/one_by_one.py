"""Weights of which one tensor at a time is in the host's memory: each is read again whenever it is asked for.

A model that several devices share puts its parts on them tensor by tensor, so that the host never has all of one part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.errors import UsageError
from toolchain.pinned.models import models

from .config import GPTConfig
from .quantize import is_quantized
from .spelling import MASKS, PREFIX, input_first
from .stored import find_folder, is_gguf, read_one, shape_in, tensor_files
from .weights import Weights, check_one, check_shapes, sizes_of, storage

Array = NDArray[Any]
ALONE = "run it on one device"
_HEAD, _EMBEDDING = "lm_head.weight", "wte.weight"


class OneByOne(Weights):
    """`read`: what reads each tensor, by its name."""

    def __init__(self, read: Mapping[str, Callable[[], Array]]) -> None:
        self._read = dict(read)

    def __getitem__(self, name: str) -> Array:
        return self._read[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._read)

    def __len__(self) -> int:
        return len(self._read)


def load(path_or_name: str | Path) -> tuple[GPTConfig, OneByOne, Path]:
    """Config, weights and folder of a GPT-2's checkpoint: see weights.load. Raises UsageError also for another
    family."""
    if is_gguf(path_or_name) or path_or_name in models():
        raise UsageError(f"{path_or_name} is a llama: only a gpt2 can be shared", hint=ALONE)
    folder = find_folder(path_or_name)
    config = sizes_of(folder)
    if config.family != "gpt2":
        raise UsageError(f"{folder} is a {config.family}: only a gpt2 can be shared", hint=ALONE)
    return config, stored(config, folder), folder


def stored(config: GPTConfig, folder: Path) -> OneByOne:
    """The weights of a GPT-2 in a checkpoint's folder. Raises UsageError for tensors whose names or shapes are not the
    model's; what is in them is checked when they are read."""
    files, where = tensor_files(folder)
    names = _ours(files, str(where))
    if is_quantized(names):
        raise UsageError(f"{where}: a quantized model cannot be shared", hint=ALONE)
    if _HEAD in names:
        _check_tied(files, names, str(where))
        del names[_HEAD]
    found = {name: shape_in(files[full], full) for name, full in names.items()}
    flat = {name: np.broadcast_to(np.float32(0), shape) for name, shape in found.items()}  # shapes without memory
    turned = {name for name, tensor in input_first(config, flat, str(where)).items() if tensor is not flat[name]}
    check_shapes(config, {n: found[n][::-1] if n in turned else found[n] for n in found}, str(where))

    def read(name: str) -> Array:
        tensor = read_one(files[names[name]], names[name])
        check_one(str(where), name, tensor)
        return np.ascontiguousarray(tensor.T) if name in turned else tensor

    return OneByOne({name: lambda name=name: read(name) for name in names})


def zeros(shapes: Mapping[str, tuple[int, ...]], dtype: str) -> OneByOne:
    """Weights that are all zero, and take no memory."""
    zero = np.zeros((), storage(dtype))
    return OneByOne({name: lambda shape=shape: np.broadcast_to(zero, shape) for name, shape in shapes.items()})


def _ours(files: Mapping[str, Path], where: str) -> dict[str, str]:
    """The stored name of each tensor by ours: see spelling.our_names."""
    found: dict[str, str] = {}
    for full in files:
        name = full.removeprefix(PREFIX)
        if name in found:
            raise UsageError(f"{where}: {name} is there twice, with `{PREFIX}` before it and without")
        if not name.endswith(MASKS):
            found[name] = full
    return found


def _check_tied(files: Mapping[str, Path], names: dict[str, str], where: str) -> None:
    """A file that stores shared memory once may have only one of the two."""
    head = names[_HEAD]
    embedding = names.setdefault(_EMBEDDING, head)
    if embedding != head and not np.array_equal(read_one(files[head], head), read_one(files[embedding], embedding)):
        raise UsageError(f"{where}: lm_head.weight differs from wte.weight; this model ties them")

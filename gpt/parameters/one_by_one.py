"""Weights of which one tensor at a time is in the host's memory: each is read again whenever it is asked for.

A model that several devices share puts its parts on them tensor by tensor, so that the host never has all of one part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.errors import UsageError

from ..config import GPTConfig
from ..files import gguf_model
from ..files.gguf import read_header
from ..files.stored import find_folder, is_gguf, read_one, shape_in, tensor_files
from .quantize import is_quantized
from .spelling import input_first, our_names
from .weights import Weights, check_one, check_shapes, found, read_as, sizes_of, storage

Array = NDArray[Any]


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


def load(path_or_name: str | Path, dtype: str = "f32") -> tuple[GPTConfig, OneByOne, Path]:
    """Config, weights and place of a checkpoint: see weights.load. `dtype`: in whose storage those of a GGUF file are
    wanted; others are read as they are stored."""
    place = found(path_or_name)
    if is_gguf(place):
        return _of_gguf(Path(place), dtype)
    folder = find_folder(place)
    config = sizes_of(folder)
    return config, stored(config, folder), folder


def stored(config: GPTConfig, folder: Path) -> OneByOne:
    """The weights in a checkpoint's folder. Raises UsageError for tensors whose names or shapes are not the model's;
    what is in them is checked when they are read."""
    files, place = tensor_files(folder)
    where = str(place)

    def as_stored(full: str) -> Array:
        return read_one(files[full], full)

    names = our_names(config, files, lambda one, other: np.array_equal(as_stored(one), as_stored(other)), where)
    if is_quantized(names):
        raise UsageError(f"{where}: a quantized model cannot be shared", hint="run it on one device")
    shapes = {name: shape_in(files[full], full) for name, full in names.items()}
    turned = _turned(config, shapes, where)
    check_shapes(config, {name: shape[:: -1 if name in turned else 1] for name, shape in shapes.items()}, where)

    def read(name: str) -> Array:
        tensor = as_stored(names[name])
        check_one(where, name, tensor)
        return np.ascontiguousarray(tensor.T) if name in turned else tensor

    return OneByOne({name: partial(read, name) for name in names})


def _turned(config: GPTConfig, shapes: Mapping[str, tuple[int, ...]], where: str) -> set[str]:
    """The weights of a GPT-2 that lie (out, in): see spelling.input_first. A llama's are to lie so."""
    if config.family != "gpt2":
        return set()
    flat = {name: np.broadcast_to(np.float32(0), shape) for name, shape in shapes.items()}  # shapes without memory
    return {name for name, tensor in input_first(config, flat, where).items() if tensor is not flat[name]}


def _of_gguf(path: Path, dtype: str) -> tuple[GPTConfig, OneByOne, Path]:
    file = read_header(path)
    config = gguf_model.read_config(file)
    names = gguf_model.our_names(file)
    check_shapes(config, {name: file.tensors[full].shape for name, full in names.items()}, str(path))

    def read(name: str) -> Array:
        tensor = gguf_model.read_tensor(file, config, names[name], read_as(dtype))
        check_one(str(path), name, tensor)
        return tensor

    return config, OneByOne({name: partial(read, name) for name in names}), path


class Zeros(OneByOne):
    """Weights that are all zero, and take no memory."""

    def __init__(self, shapes: Mapping[str, tuple[int, ...]], dtype: str) -> None:
        zero = np.zeros((), storage(dtype))
        super().__init__({name: lambda shape=shape: np.broadcast_to(zero, shape) for name, shape in shapes.items()})

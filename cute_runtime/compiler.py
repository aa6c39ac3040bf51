"""Compiler: from MLIR (llvm, nvvm, arith, scf, … and cute on layouts) to PTX and to a cubin, without a GPU.

There are two ways to PTX. The default needs Python packages alone (toolchain/cute). The other takes the folder of
an LLVM with `mlir-opt`, 22 or newer (toolchain/native/ptx.py names its passes), and knows sm_80, sm_90a and sm_100a.
The pinned ptxas makes the cubin. Results are cached by the hash of all that decides them.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from toolchain.caching.cache import Cache, key
from toolchain.compiling.stages import compile_ptx
from toolchain.errors import ToolchainError, UsageError
from toolchain.files import write_whole
from toolchain.native.ptx import PTX_FEATURES, Lowering, to_ptx
from toolchain.native.tools import HERE, NativeToolchain, NativeTools
from toolchain.pinned.tools import tool

LEVELS = (0, 1, 2, 3)
SUFFIXES = (".ptx", ".cubin")
MLIR_OPT = "mlir-opt"


@dataclass(frozen=True)
class Compiler:
    """`mlir_bin_path`: the folder of `mlir-opt`; None for the way that needs none."""

    mlir_bin_path: str | Path | None = None

    def compile_to_ptx(self, code: str, arch: str, opt_level: int = 3) -> str:
        """PTX of the kernels in MLIR text. `arch`: such as "sm_90a".

        Raises UsageError for an unknown architecture or level, SourceError for text that is none, ToolFailed and
        ToolchainError if a tool refuses it.
        """
        _check_level(opt_level)
        if self.mlir_bin_path is None:
            from toolchain.cute import compile as cute  # imported here because launching needs no compiler
            from toolchain.cute import nvvm

            way = f"llvmlite {nvvm.llvm_version()} level {opt_level}"
            return _cached(
                lambda: cute.to_ptx(code, arch, level=opt_level).encode(), way, arch, _sources(), code
            ).decode()
        if arch not in PTX_FEATURES:
            raise UsageError(f"mlir-opt is used for {', '.join(PTX_FEATURES)}, not for {arch}")
        if opt_level != 3:
            raise UsageError(f"mlir-opt is used at level 3, not {opt_level}", hint="leave mlir_bin_path away")
        path = self._mlir_opt()
        way = hashlib.sha256(path.read_bytes()).hexdigest() + " ".join(Lowering(arch).arguments())
        return _cached(lambda: self._run(path, code, arch), way, arch, code).decode()

    def compile_to_cubin(self, code: str, arch: str, opt_level: int = 3) -> bytes:
        """The same, and on to a cubin by the pinned ptxas."""
        ptx = self.compile_to_ptx(code, arch, opt_level).encode()
        options = (f"--opt-level={opt_level}",)
        return _cached(
            lambda: compile_ptx(ptx, arch, options=options), tool("ptxas").fingerprint, arch, *options, ptx
        )  # fmt: skip

    def compile(self, code: str, arch: str, output_path: str | Path, opt_level: int = 3) -> Path:
        """Writes PTX or a cubin, by the name's ending, .ptx or .cubin. Returns the path."""
        path = Path(output_path)
        if path.suffix not in SUFFIXES:
            raise UsageError(f"{path} is to be written, but neither as .ptx nor as .cubin")
        if path.suffix == ".ptx":
            made = self.compile_to_ptx(code, arch, opt_level).encode()
        else:
            made = self.compile_to_cubin(code, arch, opt_level)
        try:
            write_whole(path, made)
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error
        return path

    def _mlir_opt(self) -> Path:
        path = Path(self.mlir_bin_path or "", MLIR_OPT)
        if not path.is_file():
            raise ToolchainError(f"{path}: missing", hint="name the folder of mlir-opt, or leave mlir_bin_path away")
        return path.absolute()

    @staticmethod
    def _run(path: Path, code: str, arch: str) -> bytes:
        with tempfile.TemporaryDirectory(prefix="tilestack-") as scratch:
            found = NativeToolchain(path.parent, str(path.parent), "of that folder", HERE, {MLIR_OPT: str(path)}, {})
            return to_ptx(NativeTools(found, Path(scratch), None), _without_cute(code), arch).encode()


def _without_cute(code: str) -> str:
    """The text for `mlir-opt`, which does not know `cute`."""
    if "cute." not in code:
        return code
    from toolchain.cute.compile import lower

    return str(lower(code))


def compile_mlir(code: str, arch: str, output_path: str | Path) -> Path:
    """Compiles MLIR text to PTX or a cubin in a file, by the default way."""
    return Compiler().compile(code, arch, output_path)


def kernel_names(ptx: str) -> list[str]:
    """The kernels of PTX, in its order."""
    return re.findall(r"^\.visible \.entry (\w+)\(", ptx, re.MULTILINE)


def _check_level(level: int) -> None:
    if level not in LEVELS:
        raise UsageError(f"no optimization level {level}", hint="0, 1, 2 or 3")


def _cached(make: Callable[[], bytes], *parts: str | bytes) -> bytes:
    return Cache.configured().get_or_make(key("cute_runtime", *parts), make)


def _sources() -> str:
    """A hash of the code that lowers to LLVM IR: another version of it may write other PTX."""
    from toolchain import cute

    digest = hashlib.sha256()
    for path in sorted(Path(cute.__path__[0]).rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()

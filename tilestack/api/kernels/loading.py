"""`load`: a kernel from a file of Tile IR, a bundle, or a function in cuTile Python."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from toolchain.bundles.bundle import Bundle, BundleEntry
from toolchain.contract.artifact import tile_ir
from toolchain.contract.targets import BYTECODE
from toolchain.errors import LaunchError, UsageError
from toolchain.files import read_named
from toolchain.runtime.layout import layout

from ..arguments import parameters as signatures
from ..arguments.binding import Argument
from ..launches.code import Bundled, Bytecode
from ..needs import packages_for
from .kernel import Entry, EntryKernel, Kernel

LISTED = 8  # names in an error


def load(source: Any, entry: str | None = None) -> Kernel:
    """A kernel that can be launched.

    `source`: a file of Tile IR as text (`.mlir`) or as bytecode (`.tilebc`), a file of `kernels_mlir` (a sample of its
    kernel), a bundle's folder, or a `@ct.kernel` function of cuTile Python. `entry`: which one, where there are
    several; in a bundle its name is `source/symbol`, for example "mlir/gelu_any_f32".

    Raises UsageError for what cannot be read or chosen, SourceError with the place for text that is wrong,
    BytecodeError for damaged bytecode, BundleError for a damaged bundle, and ToolchainError for a missing package.
    """
    if not isinstance(source, str | Path):
        from .python_kernel import PythonKernel

        if entry is not None:
            raise UsageError(f"a function has no entries to choose {entry!r} from", hint="leave entry out")
        return PythonKernel(source)
    path = Path(source)
    if path.is_dir():
        return EntryKernel(_of_bundle(path, entry))
    if path.suffix == ".py":
        raise UsageError(
            f"{path}: a kernel in cuTile Python is loaded as a function, not as a file",
            hint=f"from {path.stem} import your_kernel; ts.load(your_kernel)",
        )
    if path.suffix in (".cubin", ".ptx"):
        raise UsageError(f"{path} is compiled code, which does not tell its arguments", hint="see cute_runtime.Kernel")
    return EntryKernel(_of_file(path, entry))


def _of_file(path: Path, name: str | None) -> Entry:
    with packages_for("reading Tile IR"):
        from toolchain.tileir import bytecode
        from toolchain.tileir.loading import modules_of

        from .reading import parameters

    modules = modules_of(read_named(path), str(path), path)
    named = [(symbol, module) for module in modules for symbol in module.entries]
    symbols = [symbol for symbol, _ in named]
    at = symbols.index(_chosen(str(path), symbols, name))
    symbol, module = named[at]
    artifact = tile_ir(bytecode.write(module, BYTECODE), BYTECODE)
    return Entry(Bytecode(artifact.payload, symbol, artifact.form, module), parameters(module.entries[symbol]))


def _of_bundle(path: Path, name: str | None) -> Entry:
    bundle = Bundle.load(path)
    full = {f"{e.spec.source}/{e.spec.symbol}": e for e in bundle.entries}
    if name is not None and "/" not in name:
        matching = [one for one in full if one.endswith(f"/{name}")]
        name = matching[0] if len(matching) == 1 else name
    found = full[_chosen(str(path), list(full), name)]
    return Entry(Bundled(bundle, found), signatures.of_entry(found.spec), _Fits(found))


def _chosen(where: str, names: Sequence[str], name: str | None) -> str:
    """The entry of that name, or where none is named the only one. Raises UsageError that lists those there are."""
    listed = ", ".join(names[:LISTED]) + (f" and {len(names) - LISTED} more" if len(names) > LISTED else "")
    if not names:
        raise UsageError(f"{where} has no entries, so there is nothing to launch")
    if name is None and len(names) > 1:
        raise UsageError(f"{where} has {len(names)} entries", hint=f"entry= one of {listed}")
    if name is not None and names.count(name) != 1:
        how = "no" if name not in names else "several"
        raise UsageError(f"{where} has {how} entries {name!r}", hint=f"entry= one of {listed}")
    return names[0] if name is None else name


class _Fits:
    """The conditions of a bundle's entry on its arguments, and the grid that follows from their sizes."""

    def __init__(self, entry: BundleEntry) -> None:
        self._spec = entry.spec

    def __call__(self, arguments: Sequence[Argument], sms: int) -> tuple[int, int, int]:
        """Raises LaunchError where a size, an address or a stride does not fit."""
        spec = self._spec
        misaligned: set[str] = set()
        gapped: set[str] = set()
        shapes: dict[str, tuple[int, ...]] = {}
        places: dict[str, object] = {}
        for argument in arguments:
            array, name = argument.array, argument.parameter.name
            if array is None:
                continue
            strides = tuple(int(number) for _, number in argument.numbers[len(array.shape) :])
            at_16 = array.device is None or array.address % 16 == 0
            seen = layout(argument.parameter.dtype, array.shape, strides, at_16)
            shapes[name], places[name] = array.shape, array.place
            if not seen.aligned:
                misaligned.add(name)
            if not seen.aligned_contiguous:
                gapped.add(name)
        dims = spec.bind(shapes)
        if why := spec.unmet(dims, frozenset(misaligned), frozenset(gapped)):
            raise LaunchError(f"{spec.symbol}: {why}", hint="another entry of its op may fit: see the bundle's entries")
        for out in (p.name for p in spec.params if p.role == "output"):
            for other, place in places.items():
                if other != out and place == places[out] and (other, out) not in spec.op_spec.aliases:
                    raise LaunchError(f"{spec.symbol}: {out} and {other} are the same array: this op does not allow it")
        return spec.grid_for(dims, sms)

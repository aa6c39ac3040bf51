"""The versions of the stack's parts that fit together, from `compatibility.toml`, and why a part refuses something.

The pairs: tileiras with bytecode and targets, libnvvm with tileiras and ptxas, PTX with ptxas, cubins and PTX with the
driver, the tools of cuda-tile with bytecode and hints. It needs nothing but Python's own library.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from ..errors import UsageError
from ..tables import Check, check_keys, integer, place, read_table, text, text_or_empty, texts

COMPATIBILITY = Path(__file__).parent / "compatibility.toml"
MAGIC = b"\x7fTileIR\x00"  # of Tile IR bytecode; major and minor version follow, a byte each, and a tag of two bytes
_HEADER = len(MAGIC) + 4
_PTX_VERSION = re.compile(rb"^\s*\.version\s+(\d+\.\d+)", re.MULTILINE)
_PTX_TARGET = re.compile(rb"^\s*\.target\s+(sm_\d+[af]?)\b", re.MULTILINE)
UPDATE = "raise tileiras, nvcc and nvvm in pyproject.toml to one version, then nox -s update_pins"


_ROWS: Mapping[str, Mapping[str, Check]] = {
    "tileiras": {
        "version": text, "libnvvm": text_or_empty, "bytecode": texts, "targets": texts, "source": text,
    },
    "cuda": {"release": text, "ptx": text, "chips": texts, "source": text},
    "hint": {"name": text, "since": text, "source": text},
    "cuda_tile": {"version": text, "bytecode": texts, "targets": texts, "hints": texts, "source": text},
    "driver": {"cuda": integer, "minimum": integer, "source": text},
}  # fmt: skip


@dataclass(frozen=True)
class Tileiras:
    """A version of tileiras: the bytecode versions that it reads, its targets, and the oldest libnvvm release that it
    compiles with (empty: not measured)."""

    version: str
    libnvvm: str
    bytecode: tuple[str, ...]
    targets: tuple[str, ...]
    source: str


@dataclass(frozen=True)
class Release:
    """A CUDA minor release: the newest PTX of its ptxas and its driver, and what its ptxas compiles for."""

    release: str
    ptx: str
    chips: tuple[str, ...]
    source: str


@dataclass(frozen=True)
class Driver:
    """The oldest driver release that loads cubins of a CUDA major release."""

    cuda: int
    minimum: int
    source: str


@dataclass(frozen=True)
class Hint:
    """A key of the optimization hints in bytecode, and the first tileiras that reads it, in whichever version of the
    bytecode it stands."""

    name: str
    since: str
    source: str


@dataclass(frozen=True)
class CudaTile:
    """A version of cuda-tile: the bytecode versions that it writes, from old to new, and the names that optimization
    hints may have in its text, of `targets` and of `hints`; any name where there are none."""

    version: str
    bytecode: tuple[str, ...]
    targets: tuple[str, ...]
    hints: tuple[str, ...]
    source: str

    def lacks_target(self, name: str) -> bool:
        return bool(self.targets) and name not in self.targets

    def lacks_hint(self, name: str) -> bool:
        return bool(self.hints) and name not in self.hints


@dataclass(frozen=True)
class Compatibility:
    """The whole table, each list from old to new. `sources`: where the rows come from."""

    sources: Mapping[str, str]
    tileiras: tuple[Tileiras, ...]
    cuda: tuple[Release, ...]
    hints: tuple[Hint, ...]
    cuda_tile: tuple[CudaTile, ...]
    drivers: tuple[Driver, ...]

    def of_tileiras(self, version: str) -> Tileiras | None:
        """The row of a tileiras, or of the newest known one of the same minor release."""
        return _nearest(self.tileiras, version)

    def of_cuda_tile(self, version: str) -> CudaTile | None:
        """The same of a cuda-tile."""
        return _nearest(self.cuda_tile, version)

    def of_cuda(self, version: str) -> Release | None:
        """The row of the CUDA minor release that a version belongs to."""
        return next((row for row in self.cuda if number(row.release) == number(version)[:2]), None)

    def min_driver(self, cuda: int) -> Driver:
        """The oldest driver for cubins of a CUDA major release. Raises UsageError for one that is not known."""
        for row in self.drivers:
            if row.cuda == cuda:
                return row
        raise UsageError(f"{COMPATIBILITY} has no driver for CUDA {cuda}")


Versioned = TypeVar("Versioned", Tileiras, CudaTile)


def _nearest(rows: Sequence[Versioned], version: str) -> Versioned | None:
    same = [row for row in rows if number(row.version)[:2] == number(version)[:2]]
    return next((row for row in same if row.version == version), same[-1] if same else None)


@dataclass(frozen=True)
class Misfit:
    """Two parts that do not fit: which, in a sentence, and what to do."""

    pair: str
    next: str


def number(version: str) -> tuple[int, ...]:
    """A version for comparing: `13.5.37` is (13, 5, 37)."""
    return tuple(map(int, version.split(".")))


def load(path: Path) -> Compatibility:
    """The table of a file. Raises UsageError that names the file, the line and the row that is wrong."""
    content = read_table(path)
    check_keys(content, dict.fromkeys(("sources", *_ROWS), lambda _: None), str(path))
    for kind, keys in _ROWS.items():
        for row in content[kind]:
            first = next(iter(keys))
            where = f"{place(path, f'[[{kind}]]', repr(row.get(first)).replace(chr(39), chr(34)))}: {kind}"
            check_keys(row, keys, where)
            if row["source"] not in content["sources"]:
                raise UsageError(f"{where}: its source {row['source']!r} is not in [sources]")
    return Compatibility(
        sources=content["sources"],
        tileiras=tuple(Tileiras(**_tuples(row)) for row in content["tileiras"]),
        cuda=tuple(Release(**_tuples(row)) for row in content["cuda"]),
        hints=tuple(Hint(**row) for row in content["hint"]),
        cuda_tile=tuple(CudaTile(**_tuples(row)) for row in content["cuda_tile"]),
        drivers=tuple(Driver(**row) for row in content["driver"]),
    )


def _tuples(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


@functools.cache
def table() -> Compatibility:
    """The content of `compatibility.toml`."""
    return load(COMPATIBILITY)


def bytecode_version(code: bytes) -> str | None:
    """The version in the header of Tile IR bytecode; None if this is no bytecode, or cut off in its header."""
    at = len(MAGIC)
    return f"{code[at]}.{code[at + 1]}" if code.startswith(MAGIC) and len(code) >= _HEADER else None


def bytecode_fits(tileiras: str, bytecode: str) -> Misfit | None:
    """Why this tileiras does not read this bytecode version; None if it does, or if it is not in the table."""
    row = table().of_tileiras(tileiras)
    if row is None or bytecode in row.bytecode:
        return None
    later = next((each.version for each in table().tileiras if bytecode in each.bytecode), None)
    or_later = f", or use tileiras {later} or newer: {UPDATE}" if later else ""
    return Misfit(
        f"tileiras {tileiras} does not read bytecode {bytecode}, only {' '.join(row.bytecode)}",
        f"compile with --bytecode {row.bytecode[-1]}{or_later}",
    )


def target_fits(tileiras: str, target: str) -> Misfit | None:
    """Why this tileiras does not compile for this target; None if it does, or if it is not in the table."""
    row = table().of_tileiras(tileiras)
    if row is None or target in row.targets:
        return None
    later = next((each.version for each in table().tileiras if target in each.targets), None)
    if later:
        return Misfit(
            f"tileiras {tileiras} has no target {target}, which tileiras {later} brought",
            f"use tileiras {later} or newer: {UPDATE}",
        )
    plain = target.rstrip("af")
    known = f"name {plain}: tileiras takes no suffix" if plain in row.targets else f"one of {', '.join(row.targets)}"
    return Misfit(f"tileiras {tileiras} has no target {target}, nor has any other that we know", known)


def tools_fit(tileiras: str, libnvvm: str, ptxas: str) -> Misfit | None:
    """Why tileiras cannot work with the libnvvm and the ptxas beside it; None if nothing is known against it."""
    if number(libnvvm)[:2] > number(ptxas)[:2]:
        return Misfit(
            f"libnvvm {libnvvm} writes PTX that ptxas {ptxas} is too old to read, so tileiras {tileiras} fails with 5",
            UPDATE,
        )
    row = table().of_tileiras(tileiras)
    if row is not None and row.libnvvm and number(libnvvm)[:2] < number(row.libnvvm):
        return Misfit(f"tileiras {tileiras} needs libnvvm {row.libnvvm} or newer, not {libnvvm}", UPDATE)
    return None


def ptx_fits(ptxas: str, ptx: bytes, chip: str) -> Misfit | None:
    """Why this ptxas does not compile this PTX for a chip; None if nothing is known against it."""
    row = table().of_cuda(ptxas)
    if row is None:
        return None
    version, target = _PTX_VERSION.search(ptx), _PTX_TARGET.search(ptx)
    if version and number(version[1].decode()) > number(row.ptx):
        return Misfit(f"ptxas {ptxas} reads PTX up to {row.ptx}, and this is PTX {version[1].decode()}", UPDATE)
    if chip not in row.chips:
        later = next((each.release for each in table().cuda if chip in each.chips), None)
        known = f"which ptxas {later} brought" if later else "nor has any other that we know"
        return Misfit(
            f"ptxas {ptxas} has no target {chip}, {known}", UPDATE if later else f"one of {' '.join(row.chips)}"
        )
    if target and not chip_runs(target[1].decode(), chip):
        written = target[1].decode()
        return Misfit(f"PTX for {written} cannot become a cubin for {chip}", f"compile it for {written}")
    return None


def chip_runs(written: str, chip: str) -> bool:
    """True if PTX of `.target written` can be compiled for a chip: for later ones, but with the suffix a for the same
    alone, and with f for its family, the later ones of the same major (NVIDIA's programming guide)."""
    of, on = int(written[3:].rstrip("af")), int(chip[3:].rstrip("af"))
    if written.endswith("a"):
        return written == chip
    if written.endswith("f"):
        return of // 10 == on // 10 and on >= of and chip[-1] in "af"
    return on >= of


def driver_fits(offered: tuple[int, int], cubin: int = 13) -> Misfit | None:
    """Why a driver that offers this CUDA version does not load cubins of a CUDA major release; None if it does."""
    if offered[0] >= cubin:
        return None
    oldest = table().min_driver(cubin).minimum
    return Misfit(
        f"the NVIDIA driver offers CUDA {offered[0]}.{offered[1]}; these cubins need CUDA {cubin}.0, "
        f"driver {oldest} or newer",
        f"install NVIDIA driver {oldest} or newer, or run on the CPU",
    )


def jit_fits(offered: tuple[int, int], ptx: str) -> Misfit | None:
    """Why a driver that offers this CUDA version does not compile PTX of this version when it loads it; None if it
    does, or if the PTX version is not in the table."""
    wanted = next((row.release for row in table().cuda if row.ptx == ptx), None)
    if wanted is None or offered >= number(wanted):
        return None
    return Misfit(
        f"the NVIDIA driver offers CUDA {offered[0]}.{offered[1]}, and PTX {ptx} needs CUDA {wanted}: it loads cubins "
        f"of this toolchain, not its PTX",
        "load cubins of the GPU's own target, or install a newer NVIDIA driver",
    )


def hint_fits(tileiras: str, said: str) -> Misfit | None:
    """Why this tileiras does not read a hint that it names in what it `said`; None if it names none."""
    named = re.search(r"(?:unallowed key|unknown param) (\w+)", said)
    for row in table().hints:
        if named and row.name == named[1] and number(tileiras) < number(row.since):
            return Misfit(
                f"tileiras {tileiras} does not read the optimization hint {row.name!r}, which tileiras {row.since} "
                f"brought, though it reads this bytecode version",
                f"leave that hint out, or use tileiras {row.since} or newer: {UPDATE}",
            )
    return None


def why_refused(name: str, versions: Mapping[str, str], code: bytes, target: str, said: str = "") -> Misfit | None:
    """Why the tool `name` refuses this code for this target, if the table knows. `versions`: of the tool and of those
    that it uses; `said`: what it printed."""
    version = versions[name]
    if name == "ptxas":
        return ptx_fits(version, code, target)
    written = bytecode_version(code)
    if written is None:
        return Misfit(
            f"tileiras {version} was given {len(code)} bytes that do not begin with a whole header of Tile IR bytecode",
            "tilestack verify FILE says what is wrong with it",
        )
    return (
        bytecode_fits(version, written)
        or target_fits(version, target)
        or hint_fits(version, said)
        or tools_fit(version, versions["libnvvm"], versions["ptxas"])
    )

"""Do tileiras, libnvvm, ptxas, the bytecode, the targets, the driver and the PTX that it compiles fit together?"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata

from ..contract.targets import BYTECODE, targets
from ..knobs import toolchain_dir
from ..pinned import compatibility
from ..pinned.manifest import REPAIR
from ..pinned.pins import pins
from .check import Check, misfit

PARTS = ("tileiras", "libnvvm", "ptxas")


def versions() -> dict[str, str]:
    """The versions of the tools that make a cubin: the pinned ones where the toolchain is built, as its files are
    checked against the pins, else those of the running Python's packages. An absent one is left out."""
    wheels = {part: pins().tools[part].wheel for part in PARTS}
    if toolchain_dir().exists():
        return {part: pins().wheels[wheel] for part, wheel in wheels.items()}
    found: dict[str, str] = {}
    for part, wheel in wheels.items():
        try:
            found[part] = metadata.version(wheel)
        except metadata.PackageNotFoundError:
            continue
    return found


def compilers(found: Mapping[str, str], bytecode: str = BYTECODE) -> list[Check]:
    """The tools with each other, with the bytecode that is compiled by default, and with the default targets."""
    if absent := [part for part in PARTS if part not in found]:
        said = f"{', '.join(absent)} not installed: only compiling needs them"
        return [Check(name, "note", said, REPAIR) for name in ("compilers", "bytecode", "compile targets")]
    tileiras = found["tileiras"]
    said = ", ".join(f"{part} {found[part]}" for part in PARTS)
    row = compatibility.table().of_tileiras(tileiras)
    if row is None:
        unknown = f"tileiras {tileiras} is not in {compatibility.COMPATIBILITY.name}: nothing is known about it"
        return [Check("compilers", "note", unknown, f"measure it, and add a row to {compatibility.COMPATIBILITY}")]
    why = compatibility.tools_fit(tileiras, found["libnvvm"], found["ptxas"])
    unread = compatibility.bytecode_fits(tileiras, bytecode)
    default = [target.name for target in targets().values() if target.default]
    lacking = [late for name in default if (late := compatibility.target_fits(tileiras, name))]
    reads = f"{bytecode} is compiled by default; tileiras {tileiras} reads {' '.join(row.bytecode)}"
    return [
        misfit("compilers", why) if why else Check("compilers", "ok", f"{said} fit each other"),
        misfit("bytecode", unread) if unread else Check("bytecode", "ok", reads),
        misfit("compile targets", lacking[0])
        if lacking
        else Check("compile targets", "ok", f"tileiras {tileiras} knows {' '.join(row.targets)}"),
    ]


def loading(offered: tuple[int, int] | None, found: Mapping[str, str]) -> list[Check]:
    """The driver with the cubins and the PTX of the tools. `offered`: the CUDA version of the driver, None without
    one."""
    if offered is None:
        return []
    cuda = f"{offered[0]}.{offered[1]}"
    why = compatibility.driver_fits(offered)
    cubins = Check("cubins", "ok", f"the driver offers CUDA {cuda}, and loads cubins of CUDA 13", device=True)
    lines = [misfit("cubins", why, device=True) if why else cubins]
    row = compatibility.table().of_cuda(found["libnvvm"]) if "libnvvm" in found else None
    if row is not None:
        late = compatibility.jit_fits(offered, row.ptx)
        jit = Check("ptx jit", "ok", f"the driver offers CUDA {cuda}, and compiles PTX up to {row.ptx}", device=True)
        lines.append(misfit("ptx jit", late, status="note", device=True) if late else jit)
    return lines

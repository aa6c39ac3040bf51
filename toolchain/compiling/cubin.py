"""The GPU resources that a compiled kernel uses, read from its cubin with the toolchain's cuobjdump and nvdisasm."""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from ..caching.cache import Cache, key
from ..errors import ToolchainError
from ..pinned.tools import pinned_fingerprint, stop_all, tool

# Instructions that show the use of tensor cores, of the copy engine, and spills.
TENSOR_CORE = re.compile(r"^(?:[A-Z]*MMA|UTC[A-Z]*MMA)$")
COPY_ENGINE = re.compile(r"^(?:UTMA(?:LDG|STG|REDG|PF)|UBLK(?:CP|RED|PF))$")
_EM_CUDA = 190  # e_machine of an ELF file
_USAGE = re.compile(r"Function (\S+):\s*\n\s*REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)")
_PRODUCT = re.compile(r"\bHGMMA\.[^;]*;")
_INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P[\dT]+ )?([A-Z][A-Z0-9_]*)", re.MULTILINE)


@dataclass(frozen=True)
class Usage:
    """Resources of one entry. `registers`: per thread; `shared`, `stack` and `local`: in bytes; the rest are counts of
    instructions. `serialised`: the number of Hopper's matrix products if ptxas makes each wait for the previous one
    (its note C7514), else 0. `mix`: how often each instruction is there, the commonest first."""

    symbol: str
    registers: int
    shared: int
    stack: int
    local: int
    instructions: int
    spills: int
    serialised: int
    tensor_core: dict[str, int]
    copy_engine: dict[str, int]
    mix: dict[str, int] = field(default_factory=dict[str, int])


def is_cubin(data: bytes) -> bool:
    """True if the header is that of an ELF file for a GPU."""
    return data[:4] == b"\x7fELF" and int.from_bytes(data[18:20], "little") == _EM_CUDA


def inspect_all(cubins: Sequence[bytes], cache: Cache, jobs: int) -> Iterator[list[Usage]]:
    """`inspect` for each cubin, `jobs` at once. A cubin that was inspected before comes from the cache. Raises as
    `inspect` does."""
    tools = [pinned_fingerprint(name) for name in ("cuobjdump", "nvdisasm")]
    names = [each.name for each in fields(Usage)]

    def look(cubin: bytes) -> list[Usage]:
        content = cache.get_or_make(
            key("inspect", cubin, *tools, *names),
            lambda: json.dumps([asdict(usage) for usage in inspect(cubin)]).encode(),
        )
        return [Usage(**row) for row in json.loads(content)]

    with ThreadPoolExecutor(jobs) as pool:
        try:
            yield from pool.map(look, cubins)
        except BaseException:  # interrupted, say: the tools that still run would be waited for
            stop_all()
            raise


def inspect(cubin: bytes) -> list[Usage]:
    """The usage of each entry of a cubin. Raises ToolchainError if the tools cannot read it."""
    with tempfile.TemporaryDirectory(prefix="tilestack-") as folder:
        path = Path(folder, "kernel.cubin")
        path.write_bytes(cubin)
        usage = tool("cuobjdump").run(["--dump-resource-usage", str(path)]).stdout
        found = _USAGE.findall(usage)
        if not found:
            raise ToolchainError(f"cuobjdump {tool('cuobjdump').version} names no entry in this file: is it a cubin?")
        code = tool("nvdisasm").run(["--print-code", str(path)]).stdout
    sections = _sections(code)
    rows: list[Usage] = []
    for symbol, *numbers in found:
        registers, stack, shared, local = map(int, numbers)
        text = sections.get(symbol, "")
        counts = Counter(_INSTRUCTION.findall(text))
        rows.append(
            Usage(
                symbol, registers, shared, stack, local,
                instructions=counts.total(),
                spills=counts["STL"] + counts["LDL"],
                serialised=serialised(text),
                tensor_core={name: n for name, n in sorted(counts.items()) if TENSOR_CORE.match(name)},
                copy_engine={name: n for name, n in sorted(counts.items()) if COPY_ENGINE.match(name)},
                mix=dict(sorted(counts.items(), key=lambda row: (-row[1], row[0]))),
            )
        )  # fmt: skip
    return rows


def serialised(code: str) -> int:
    """The number of matrix products in a disassembly if there are several and each ends a group that is waited for
    (`gsb0`), else 0. Normally the products of one loop step form one group."""
    products = _PRODUCT.findall(code)
    return len(products) if len(products) > 1 and all("gsb0" in product for product in products) else 0


def _sections(code: str) -> dict[str, str]:
    """The disassembly of each entry by its symbol."""
    parts = re.split(r"^//-+ \.text\.(\S+) -+$|^\s*\.section\s+\.text\.([^,\s]+).*$", code, flags=re.MULTILINE)
    found: dict[str, str] = {}
    for at in range(1, len(parts), 3):
        symbol = parts[at] or parts[at + 1]
        found[symbol] = found.get(symbol, "") + parts[at + 2]
    return found

"""Cases as C++, and what g++ says of them.

Each result is shown by an error on purpose: a type without a definition, whose name holds the result's type and the
values in it that are no part of the type. A case that CuTe refuses has no such error, or another one on its line.
"""

from __future__ import annotations

import itertools
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolchain.cute.layout import Basis, Layout
from toolchain.cute.layout.tuples import flatten
from toolchain.errors import ToolchainError

from .cases import OPERATIONS, Case
from .known import Known

# Shown<result type, numbers that are not part of it>. `put` walks a result from left to right.
PRELUDE = """#include <cute/layout.hpp>
using namespace cute;
struct Numbers { int count = 0; int values[40] = {}; };
template <class T> constexpr void put(Numbers& made, T const& part) {
  if constexpr (is_layout<T>::value) { put(made, part.shape()); put(made, part.stride()); }
  else if constexpr (is_tuple<T>::value) apply(part, [&](auto const&... parts) { (put(made, parts), ...); });
  else if constexpr (is_scaled_basis<T>::value) put(made, part.value());
  else if constexpr (!is_static<T>::value) made.values[made.count++] = static_cast<int>(part);
}
template <class T> constexpr Numbers numbers(T const& result) { Numbers made; put(made, result); return made; }
template <class T, Numbers N = Numbers{}> struct Shown;
"""
FLAGS = (
    "-std=c++20", "-fsyntax-only", "-w", "-fmax-errors=0", "-fno-diagnostics-show-caret",
    "-ftemplate-backtrace-limit=2",
    "-fimplicit-constexpr",  # some functions of CuTe are only inline
)  # fmt: skip
_SHOWN = re.compile(r"Shown<(?P<shown>.*)> r(?P<case>\d+)[’'].* has incomplete type")
_FROM = re.compile(
    r"^[^:\s]*cases\.cpp:(?P<line>\d+):\d+: +(?P<said>required from here|error|in .constexpr. expansion)"
)
_VALUES = re.compile(r"\{([\d\s,-]*)\}")  # of Numbers{2, int [40]{7, 5}}
_WORD = re.compile(r"\s*(?:(?P<name>[A-Za-z_][\w:]*)|(?P<number>-?\d+)|(?P<sign>[<>,{}()]))")


@dataclass(frozen=True)
class Compiler:
    """g++ and where the headers are. `includes`: of CUTLASS, of CUDA and of its standard library."""

    includes: tuple[Path, ...]
    command: str = "g++"

    def results(self, cases: Sequence[Case], folder: Path) -> list[Any]:
        """CuTe's result of each case, or None where it refuses. Raises ToolchainError if the headers do not compile."""
        source = folder / "cases.cpp"
        head = PRELUDE.count("\n")
        source.write_text(PRELUDE + "".join(f"{shown(case, number)}\n" for number, case in enumerate(cases)))
        places = [f"-I{path}" for path in self.includes]
        done = subprocess.run(
            [self.command, *FLAGS, *places, source.name], cwd=folder, capture_output=True, text=True, check=False
        )
        if "fatal error" in done.stderr or (done.returncode and "Shown<" not in done.stderr):
            said = "\n".join(line for line in done.stderr.splitlines() if "error" in line)[:600]
            raise ToolchainError(
                f"{self.command} cannot compile CuTe's headers: {said}",
                hint="name the folders of CUTLASS and CUDA: --cutlass, --include",
            )
        return read(done.stderr, len(cases), head)


def read(said: str, count: int, head: int) -> list[Any]:
    """The results in a compiler's errors, of `count` cases whose lines follow `head` others."""
    found: dict[int, Any] = {}
    refused: set[int] = set()
    for line in said.splitlines():
        if (match := _SHOWN.search(line)) is not None:
            found[int(match["case"])] = parse(match["shown"])
        elif (match := _FROM.match(line)) is not None:
            refused.add(int(match["line"]) - head - 1)
    return [None if number in refused else found.get(number) for number in range(count)]


def shown(case: Case, number: int) -> str:
    """The line that shows a case's result as rNUMBER."""
    made = OPERATIONS[case.operation].cpp.format(*map(written, case.operands))
    if "?" not in case.kinds:
        return f"Shown<decltype({made})> r{number};"
    kind = f"std::remove_const_t<decltype(v{number})>"
    return f"constexpr auto v{number} = {made}; Shown<{kind}, numbers(v{number})> r{number};"


def written(operand: Any) -> str:
    """An operand of CuTe: the value of its type, with the numbers that are no part of it."""
    if isinstance(operand, Layout):
        values = (operand.shape, operand.stride)
        return f"Layout<{_type(values[0])},{_type(values[1])}>{{{_values(values)}}}"
    return f"{_type(operand)}{{{_values(operand)}}}"


def _type(operand: Any) -> str:
    if isinstance(operand, tuple):
        return f"tuple<{','.join(map(_type, operand))}>"
    if isinstance(operand, Basis):
        return f"ScaledBasis<{_type(operand.scale)},{','.join(map(str, operand.path))}>"
    return "int" if isinstance(operand, Known) else f"C<{operand}>"


def _values(operand: Any) -> str:
    """The values that a value of this type is made of; none if the type says all of it."""
    if not any(isinstance(leaf.scale if isinstance(leaf, Basis) else leaf, Known) for leaf in flatten(operand)):
        return ""
    if isinstance(operand, tuple):
        return ",".join(f"{_type(part)}{{{_values(part)}}}" for part in operand)
    return _values(operand.scale) if isinstance(operand, Basis) else str(operand.value)


def parse(text: str) -> Any:
    """A result in the name of a type: a Layout, a tuple, a Basis or a number."""
    kind, _, numbers = text.partition(", Numbers{")
    values = _VALUES.search(numbers)
    made, _ = _kind(list(_WORD.finditer(kind)), 0)
    shown = [int(value) for value in values[1].split(",") if value.strip()] if values else []
    return _filled(made, itertools.chain(shown, itertools.repeat(0)))  # zeros at the end are not shown


def _kind(words: Sequence[re.Match[str]], at: int) -> tuple[Any, int]:
    word = words[at]
    if word["number"] is not None:
        return int(word["number"]), at + 1
    name, parts = (word["name"] or "").rpartition("::")[2], list[Any]()
    at += 1
    if at < len(words) and words[at]["sign"] == "<":
        at += 1
        while words[at]["sign"] != ">":
            part, at = _kind(words, at)
            parts.append(part)
            at += words[at]["sign"] == ","
        at += 1
    return (name, parts), at


def _filled(kind: Any, values: Iterator[int]) -> Any:
    """The value of a type. `values`: of its numbers that are no part of it."""
    name, parts = kind
    match name:
        case "Layout":
            shape, stride = (_filled(part, values) for part in parts)
            return Raw(shape, stride)
        case "tuple" | "ArithmeticTuple":
            return tuple(_filled(part, values) for part in parts)
        case "C" | "Int":
            return parts[0]
        case "constant" | "integral_constant":
            return parts[1]
        case "ScaledBasis":
            return Basis(_filled(parts[0], values), tuple(parts[1:]))
        case "int" | "long" | "unsigned":
            return next(values)
        case _:
            raise ToolchainError(f"a result of CuTe has the type {name}, which this comparison cannot read")


@dataclass(frozen=True)
class Raw:
    """A shape and strides as CuTe gives them; a size may be 0."""

    shape: Any
    stride: Any

    def __str__(self) -> str:
        return f"{self.shape}:{self.stride}".replace(" ", "")

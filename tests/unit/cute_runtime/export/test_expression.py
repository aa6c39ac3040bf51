"""An expression in C++ has the value that it has in Python."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from cute_runtime.export.expression import to_cpp
from toolchain.contract.entries import entries_of
from toolchain.contract.expressions import evaluate, expression_names
from toolchain.errors import UsageError


@pytest.mark.parametrize(
    ("text", "cpp"),
    [
        ("M", "M"),
        ("M + 2 * BM", "M + (2 * 64)"),
        ("(M + 2) * BM", "(M + 2) * 64"),
        ("M // 4 % 3 == 1", "floormod(floordiv(M, 4), 3) == 1"),
        ("cdiv(M, BM) * cdiv(N, BM)", "cdiv(M, 64) * cdiv(N, 64)"),
        ("min(M, N, 3)", "std::min<std::int64_t>({M, N, 3})"),
    ],
)
def test_what_is_written(text: str, cpp: str) -> None:
    assert to_cpp(text, {"M": "M", "N": "N", "BM": 64}) == cpp


@pytest.mark.parametrize("text", ["M ** 2", "M.x", "Q", "1.5", "f(M)", "1 < M < 3", "min(M)", "cdiv(M)", "M +", "-M"])
def test_what_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        to_cpp(text, {"M": "M"})


@pytest.mark.needs("g++")
def test_every_expression_of_the_tables_has_the_value_that_python_gives(
    build: Callable[..., Path], driver, tmp_path: Path
) -> None:
    """Beside those, ones with negative numbers, for which C++ rounds the other way."""
    specs = [spec for source in ("mlir", "py") for spec in entries_of(source)]
    texts = {text: spec.constants for spec in specs for text in (*spec.where, *spec.grid)}
    texts |= {text: {} for text in ("(3 - M) // 4", "(3 - M) % 4", "cdiv(2 - M, 3)", "M // (2 - N)", "M % (2 - N)")}
    rng = random.Random(0)
    lines, wanted = [], []
    for text, constants in texts.items():
        for _ in range(3):
            names = {name: rng.randint(3, 5000) for name in expression_names(text)} | dict(constants)
            cpp = to_cpp(text, {name: f"std::int64_t{{{number}}}" for name, number in names.items()})
            lines.append(f'  std::printf("%lld\\n", static_cast<long long>({cpp}));')
            wanted.append(int(evaluate(text, names)))
    source = tmp_path / "values.cpp"
    body = "\n".join(lines)
    head = "#include <cute_runtime/bundle.hpp>\n#include <cstdio>\nusing namespace cute_runtime;"
    source.write_text(f"{head}\nint main() {{\n{body}\n}}\n")
    assert [int(line) for line in driver.run(build(source)).split()] == wanted

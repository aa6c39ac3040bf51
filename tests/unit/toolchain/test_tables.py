"""A table of TOML that is wrong is an error with the file and line, whichever of ours it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.ops import compare
from toolchain.contract import op, targets
from toolchain.contract.entries import load_table
from toolchain.errors import UsageError
from toolchain.knobs import ENTRIES
from toolchain.tables import place, read_table


def ops(path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(op, "OPS", path)
    return op.ops.__wrapped__()


def known_targets(path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(targets, "TARGETS", path)
    return targets.targets.__wrapped__()


def tolerances(path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(compare, "TOLERANCES", path)
    return compare._table.__wrapped__()


def entries(path: Path, _: pytest.MonkeyPatch) -> Any:
    return list(load_table(path).entries("mlir"))


READERS: dict[Path, Callable[[Path, pytest.MonkeyPatch], Any]] = {
    op.OPS: ops,
    targets.TARGETS: known_targets,
    compare.TOLERANCES: tolerances,
    ENTRIES / "sm_90.toml": entries,
}
GELU = '[gelu]\ndoc = "gelu"\ninputs = ["x: T[M, N]"]\noutputs = ["out: T[M, N]"]\n'
SM_90 = '[sm_90]\ncompute_capability = [9, 0]\nmin_bytecode = "13.2"\nexact = false\nfeatures = []\ndefault = true\n'
ROUNDING = "[unit_roundoff]\nf32 = 5.9e-8\n[op.gelu]\nf32_ulps = 4\nwhy = 'tanh'\n"
GROUP = '[[group]]\nops = ["gelu"]\ndtypes = ["f32"]\nconstants = { R = 1, BN = 8 }\ngrid = ["M", "1", "1"]\n'


@pytest.mark.parametrize("path", READERS, ids=lambda path: path.name)
def test_broken_toml_names_its_line(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    READERS[path](path, monkeypatch)  # as it stands
    lines = path.read_text().splitlines()
    broken = tmp_path / path.name
    broken.write_text("\n".join([*lines[:30], "this is = = no TOML", *lines[30:]]))
    with pytest.raises(UsageError, match=rf"{broken}:31:6: not valid TOML: .*\n  next: "):
        READERS[path](broken, monkeypatch)


def test_toml_that_never_ends_names_its_last_line(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text('a = 1\nb = """\n')
    with pytest.raises(UsageError, match=rf"{tmp_path}/t\.toml:3:1: not valid TOML: "):
        read_table(tmp_path / "t.toml")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("ops.toml", GELU.replace("x: T[M", "x: f99[M"), r":4: 'x: f99\[M, N\]' has the unknown dtype f99"),
        ("ops.toml", GELU.replace("x: T[M", "x T[M"), r":4: 'x T\[M, N\]' is not a valid input param"),
        ("ops.toml", GELU + 'pdl_reads = ["y"]\n', r":2: gelu: pdl_reads names no array: y"),
        ("ops.toml", GELU + 'erly = ["x"]\n', r":2: gelu: unknown erly\n  next: it takes doc"),
        ("ops.toml", GELU.replace('doc = "gelu"\n', ""), r":2: gelu: it has no doc"),
        ("ops.toml", GELU + 'aliases = ["x", "out"]\n', r":2: gelu: aliases is .*, not a list of pairs of texts"),
        ("ops.toml", "gelu = 3\n", r": gelu is 3, not a table"),
        ("targets.toml", SM_90.replace("[9, 0]", "9"), r":2: sm_90: compute_capability is 9, not \[major, minor\]"),
        ("targets.toml", SM_90.replace("exact = false\n", ""), r":2: sm_90: it has no exact"),
        ("targets.toml", SM_90 + "speed = 1\n", r":2: sm_90: unknown speed"),
        ("tolerances.toml", ROUNDING.replace("why = 'tanh'\n", ""), r":4: op\.gelu: it has no why"),
        ("tolerances.toml", ROUNDING.replace("= 4", "= 'x'"), r":4: op\.gelu: f32_ulps is 'x', not a number"),
        ("tolerances.toml", ROUNDING.replace("5.9e-8", "'x'"), r": unit_roundoff is .*, not a table of numbers"),
        ("tolerances.toml", ROUNDING + "[benchmark.norm]\nrelative = 1\nwhy = 'a'\n",
         r":7: benchmark\.norm: relative is 1, not a table of numbers"),
        ("tolerances.toml", ROUNDING + "[benchmark.norm]\nrelative = {}\n", r":7: benchmark\.norm: it has no why"),
        ("sm_90.toml", GROUP.replace('"f32"', '"f99"'), r":2: group 1 \(gelu\): .*dtype 'f99'"),
        ("sm_90.toml", GROUP + GROUP.replace("gelu", "gleu"), r":7: group 2: no op gleu in ops\.toml"),
        ("sm_90.toml", GROUP + "[[group.entry]]\n[[group.entry]]\nspeed = 1\n", r":8: group 1, entry 2: unknown speed"),
    ],
)  # fmt: skip
def test_a_row_that_is_wrong_names_its_line(
    name: str, content: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    path.write_text(f"# a comment\n{content}")
    (reader,) = (read for known, read in READERS.items() if known.name == name)
    with pytest.raises(UsageError, match=f"{path}{said}"):
        reader(path, monkeypatch)


def test_a_dtype_without_a_rounding_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "_table", lambda: {"unit_roundoff": {"f32": 1.0}})
    with pytest.raises(UsageError, match=r"tolerances\.toml: \[unit_roundoff\] has no bf16"):
        compare.unit_roundoff("bf16")


def test_a_place_is_where_the_last_text_stands(tmp_path: Path) -> None:
    path = tmp_path / "t.toml"
    path.write_text("[a]\nx = 1\n[b]\nx = 1\n")
    assert place(path, "[b]", "x = 1") == f"{path}:4"
    assert place(path, "[b]", "y") == str(path)

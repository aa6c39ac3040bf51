"""A matrix.toml of somebody's own kernels."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tilestack.own.new import TEMPLATE
from tilestack.own.table import Array, load
from toolchain.errors import UsageError

TEXT = (TEMPLATE / "matrix.toml").read_text()


def test_the_template_is_read() -> None:
    (op,) = load(TEMPLATE / "matrix.toml")
    assert op.inputs == {"x": Array(["M", "N"]), "y": Array(["M", "N"])} and op.numbers == {"alpha": 0.75}
    assert tomllib.loads(TEXT)["op"][0]["f32_ulps"] == op.f32_ulps == 2


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('dtypes = ["f32", ', 'dtypes = ["f33", ', "no dtype f33"),
        ("{ M = 1, N = 1 }", "{ M = 1 }", "its arrays have M, N"),
        ("{ M = 1, N = 1 }", "{ M = 0, N = 1 }", "from 1"),
        ("f32_ulps = 2", "f32_ulps = -1", "a number from 0"),
        ('why = "one product and one sum in f32"', "", "it has no why"),
        ("numbers = { alpha = 0.75 }", "numbers = { alpha = 'a' }", "numbers"),
        ('outputs = { out = ["M", "N"] }', "outputs = {}", "a table of arrays"),
        ('x = ["M", "N"]', 'x = { sizes = ["M", "N"], dtype = "f33" }', "x: dtype is 'f33', not one of"),
        ('x = ["M", "N"]', 'x = { dtype = "i32" }', "x: it has no sizes"),
        (
            'x = ["M", "N"]',
            'x = { sizes = ["M", "N"], dtype = "i32", below = "K" }',
            "x: no size K\n  next: one of M, N",
        ),
        ('x = ["M", "N"]', 'x = { sizes = ["M", "N"], dtype = "i8", below = 129 }', "x: no i8 from 0 and below 129"),
        ('x = ["M", "N"]', 'x = { sizes = ["M", "N"], dtype = "i8", below = 0 }', "x: no i8 from 0 and below 0"),
        ('x = ["M", "N"]', 'x = { sizes = ["M", "N"], from = true }', "x: from is True, not an integer"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = tmp_path / "matrix.toml"
    path.write_text(TEXT.replace(old, new))
    with pytest.raises(UsageError, match=said) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}:3: ")


def test_an_array_of_a_dtype_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "matrix.toml"
    path.write_text(TEXT.replace('y = ["M", "N"]', 'y = { sizes = ["M"], dtype = "i32", below = "N" }'))
    y, x = load(path)[0].inputs["y"], load(path)[0].inputs["x"]
    assert (y.storage("f16"), x.storage("f16"), y.shape({"M": 3, "N": 5}), y.range({"M": 3, "N": 5})) == (
        "i32",
        "f16",
        (3,),
        (0, 5),
    )
    assert x.range({}) == (-100, 100)


def test_two_ops_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "matrix.toml").write_text(TEXT + TEXT)
    with pytest.raises(UsageError, match="two ops are called axpy"):
        load(tmp_path / "matrix.toml")

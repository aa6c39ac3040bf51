"""Which source is the fastest: reading the rows, and choosing by them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from toolchain.contract.entries import load_table
from toolchain.contract.fastest import Fastest, Pick, picked
from toolchain.errors import UsageError

ROW: dict[str, Any] = {
    "op": "linear", "class": "large", "dtypes": ["bf16"], "source": "cute", "where": ["M > 64"],
    "us": {"M=128 K=8 N=8": {"mlir": 2.0, "cute": 1.0}}, "slower_in": [],
}  # fmt: skip
HEAD = {"gpu": "a GPU", "driver": "1", "date": "2026-01-01", "dtype": "bf16"}


def test_the_first_row_that_holds_names_the_source() -> None:
    rows = [ROW, {**ROW, "class": "all", "source": "mlir", "where": []}]
    picks = Fastest.from_table({**HEAD, "row": rows}, "here").picks
    assert picked(picks, "linear", "bf16", {"M": 65, "K": 8, "N": 8}) == "cute"
    assert picked(picks, "linear", "bf16", {"M": 64, "K": 8, "N": 8}) == "mlir"
    assert picked(picks, "linear", "f16", {"M": 65, "K": 8, "N": 8}) is None, "another dtype was not measured"
    assert picked(picks, "gelu", "bf16", {"M": 65, "N": 8}) is None


def test_a_row_survives_the_way_through_a_manifest() -> None:
    pick = Pick.from_table(ROW, "here")
    assert Pick.from_table({**ROW, "gpu": "another"}, "here").to_table()["gpu"] == "another"
    assert pick.to_table() == ROW and Pick.from_table(pick.to_table(), "there") == pick


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"op": "linaer"}, "no op linaer"),
        ({"dtypes": ["f64"]}, "no dtype f64"),
        ({"where": ["Q > 1"]}, "uses unknown Q"),
        ({"source": "py"}, "py has no time at M=128 K=8 N=8"),
        ({"us": {"M=1": 2.0}}, "not a table of tables of microseconds"),
        ({"times": 1}, "unknown times"),
    ],
)
def test_a_wrong_row_is_refused(change: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=f"here.*{re.escape(why)}"):
        Pick.from_table({**ROW, **change}, "here")


def test_the_portable_table_has_no_measurement(tmp_path: Path) -> None:
    table = '[fastest]\ngpu = "a"\ndriver = "1"\ndate = "d"\ndtype = "bf16"\nrow = []\n'
    for name in ("portable", "sm_90"):
        (tmp_path / f"{name}.toml").write_text(table)
    assert load_table(tmp_path / "sm_90.toml").fastest == Fastest("a", "1", "d", "bf16", ())
    with pytest.raises(UsageError, match="a fastest row is for one target"):
        load_table(tmp_path / "portable.toml")

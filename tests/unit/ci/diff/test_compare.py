"""Two bundles compared, cubin by cubin. The disassembler is a stand-in; tests/compile has the real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci.diff.compare import compare, opened
from tests.unit.cubins import cubin
from toolchain.bundles.archive import pack
from toolchain.caching.cache import Cache
from toolchain.compiling.cubin import Usage
from toolchain.errors import BundleError, UsageError

from .conftest import PLAIN, Make, other

A, B, C = "gelu_1024_f16", "gelu_any_f16", "gelu_any_f32"


def test_cells_are_paired_and_the_worst_comes_first(bundle: Make, usages: dict[bytes, Usage], tmp_path: Path) -> None:
    one = bundle("one", {A: {"sm_80": b"1", "sm_90": b"1"}, B: {"sm_90": b"1"}}, tools={"tileiras": "13.4.92"})
    two = bundle(
        "two", {A: {"sm_80": b"1", "sm_90": b"2"}, B: {"sm_90": b"3"}, C: {"sm_90": b"1"}},
        tools={"tileiras": "13.5.37"}, code=b"other",
    )  # fmt: skip
    usages |= {b"1": PLAIN, b"2": other(registers=66), b"3": other(spills=9)}
    made = compare((one, two), ("one", "two"), Cache(tmp_path), 1)
    assert [pair.cell for pair in made.changed] == [f"py/{B} sm_90", f"py/{A} sm_90"]
    assert [pair.name for pair in made.suspicious] == [f"py/{B}"] and made.better == []
    assert (made.identical, made.exit_code) == (1, 1)
    assert made.only == ((), (f"py/{C} sm_90",))
    assert made.tools == ("tileiras 13.4.92 to 13.5.37",)
    assert not made.changed[0].same_code
    back = compare((two, one), ("two", "one"), Cache(tmp_path), 1)
    assert back.exit_code == 0 and [pair.name for pair in back.better] == [f"py/{B}"]
    row = made.to_json()["changed"][0]
    assert row["after"]["spills"] == 9 and row["after"]["code_bytes"] == 6400 and row["suspicion"] == 40
    assert made.to_json()["suspicious"] == 1


def test_a_renamed_kernel_of_the_same_machine_code_is_identical(bundle: Make, tmp_path: Path) -> None:
    one, two = (bundle(name, {A: {"sm_90": cubin(b"code", note=name)}}) for name in ("one", "two"))
    assert compare((one, two), ("one", "two"), Cache(tmp_path), 1).identical == 1


def test_a_damaged_file_is_not_identical(bundle: Make, tmp_path: Path) -> None:
    one, two = (bundle(name, {A: {"sm_90": cubin(b"code")}}) for name in ("one", "two"))
    (file,) = two.root.glob("files/*.cubin")
    file.write_bytes(cubin(b"code")[:-1])
    with pytest.raises(BundleError, match="is damaged"):
        compare((one, two), ("one", "two"), Cache(tmp_path), 1)


def test_what_cannot_be_compared(bundle: Make, tmp_path: Path) -> None:
    one, two = bundle("one", {A: {"sm_80": b"1"}}), bundle("two", {A: {"sm_90": b"1"}})
    with pytest.raises(UsageError, match="one has cubins for sm_80; two has cubins for sm_90"):
        compare((one, two), ("one", "two"), Cache(tmp_path), 1)
    with pytest.raises(UsageError, match="no such bundle"), opened(tmp_path / "missing"):
        pass
    (tmp_path / "text").write_text("no archive")
    with pytest.raises(BundleError, match="damaged, or not"), opened(tmp_path / "text"):
        pass


def test_a_packed_bundle_is_as_good_as_a_folder(bundle: Make, tmp_path: Path) -> None:
    one = bundle("one", {A: {"sm_80": b"1"}})
    pack(one.root, tmp_path / "one.tar.xz")
    with opened(one.root) as folder, opened(tmp_path / "one.tar.xz") as packed:
        made = compare((folder, packed), ("folder", "packed"), Cache(tmp_path), 1)
    assert (made.changed, made.identical, made.exit_code) == ((), 1, 0)

"""Tuned entries: read, checked, put before a source's own, and found stale."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from toolchain import tuned
from toolchain.entry import EntrySpec
from toolchain.errors import SourceError, UsageError
from toolchain.pins import pins

ROW = """\
[[entry]]
op = "gelu"
class = "wide"
dtypes = ["f16", "bf16"]
sources = ["py", "mlir"]
targets = ["sm_90"]
variant = "sm_90_wide"
constants = {{ BN = 512 }}
hints = {{ sm_90 = {{ occupancy = 2 }} }}
where = ["N > 1024"]
grid = ["cdiv(N, BN)", "M", "1"]

[entry.measured]
gpu = "NVIDIA H200"
driver = "580.1"
date = "2026-01-02"
source = "py"
dtype = "bf16"
space = "gelu"
us = {{ "M=8 N=3072" = 2.5 }}
tools = {{ tileiras = "{tileiras}" }}
kernel_hash = {{ py = "{kernel}", mlir = "{kernel}" }}
"""


def tileiras() -> str:
    return pins().tools["tileiras"].expected()


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    path = tmp_path / "gelu.mlir"
    path.write_text("a kernel")
    return path


Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path, kernel: Path) -> Write:
    """Writes a file of one row, `old` replaced by `new`; returns the folder."""

    def run(old: str = "", new: str = "", name: str = "sm_90.toml") -> Path:
        row = ROW.format(tileiras=tileiras(), kernel=tuned.kernel_hash({kernel.name: kernel.read_text()}))
        assert old in row
        folder = tmp_path / "tuned"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(row.replace(old, new))
        return folder

    return run


class Source:
    def __init__(self, path: Path) -> None:
        self.path = path

    def written(self, spec: EntrySpec) -> dict[str, str]:
        if not self.path.exists():
            raise SourceError(f"{spec.symbol}: there is no kernel")
        return {self.path.name: self.path.read_text()}


def own(symbol: str = "gelu_1024_bf16") -> EntrySpec:
    return EntrySpec(symbol, "gelu", "py", "bf16", grid=("M", "1", "1"))


def test_no_folder_is_nothing_tuned(tmp_path: Path) -> None:
    assert tuned.load_rows(tmp_path / "none") == []
    assert tuned.put_first([own()], "py", tmp_path / "none") == [own()]


def test_a_row_gives_an_entry_for_each_dtype_and_source(write: Write) -> None:
    (row,) = tuned.load_rows(write())
    assert (row.target, row.op, row.shape_class, row.number) == ("sm_90", "gelu", "wide", 1)
    assert row.name == "gelu f16, bf16 wide for sm_90 (py, mlir)"
    assert [spec.symbol for spec in row.entries["mlir"]] == ["gelu_sm_90_wide_f16", "gelu_sm_90_wide_bf16"]
    spec = row.entries["py"][1]
    assert (spec.source, spec.targets, spec.where) == ("py", ("sm_90",), ("N > 1024",))
    assert (spec.constants, spec.hints) == ({"BN": 512}, {"sm_90": {"occupancy": 2}})


def test_tuned_entries_come_before_a_sources_own(write: Write) -> None:
    folder = write('sources = ["py", "mlir"]', 'sources = ["py"]')
    merged = [spec.symbol for spec in tuned.put_first([own()], "py", folder)]
    assert merged == ["gelu_sm_90_wide_f16", "gelu_sm_90_wide_bf16", "gelu_1024_bf16"]
    assert tuned.put_first([own()], "mlir", folder) == [own()]


def test_the_search_spaces_are_not_taken_for_a_target(write: Write) -> None:
    folder = write()
    (folder / "spaces.toml").write_text("[[space]]\n")
    assert len(tuned.load_rows(folder)) == 1


def test_a_symbol_that_is_there_twice(write: Write) -> None:
    folder = write()
    with pytest.raises(UsageError, match=r"tuned: py has two entries gelu_sm_90_wide_bf16\n  next: give one another"):
        tuned.put_first([own("gelu_sm_90_wide_bf16")], "py", folder)
    (folder / "sm_90.toml").write_text((folder / "sm_90.toml").read_text() * 2)
    with pytest.raises(UsageError, match="two entries gelu_sm_90_wide_f16"):
        tuned.put_first([], "py", folder)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[[entry]]", "[[entry", r"sm_90\.toml cannot be read: .*line 1"),
        ("[[entry]]", "[entry]", r"sm_90\.toml: entry is .*, not a list of tables"),
        ("[[entry]]", "x = 1\n[[entry]]", r"sm_90\.toml: unknown x\n  next: it takes entry"),
        ('class = "wide"', "", r"sm_90\.toml: entry 1: it has no class"),
        ('class = "wide"', "class = 3", r"entry 1: class is 3, not a text"),
        ("BN = 512", "BN = 5.5", r"entry 1: constants is .*, not a table of integers"),
        ("occupancy = 2", "occupancy = true", r"entry 1: hints is .*, not a table of tables of integers"),
        ('where = ["N > 1024"]', 'if = ["N"]', r"entry 1: unknown if\n  next: it takes op, class"),
        ('where = ["N > 1024"]', 'where = ["Q > 1"]', r"entry 1 \(gelu wide\): gelu_sm_90_wide_f16: 'Q > 1' uses unk"),
        ('op = "gelu"', 'op = "nope"', r"entry 1 \(nope wide\): .*no op 'nope'"),
        ('"M", "1"]', '"1"]', r"entry 1 \(gelu wide\): grid has 2 expressions"),
        ('targets = ["sm_90"]', 'targets = ["sm_80"]', r"entry 1 \(gelu wide\): targets is .*it must be \['sm_90'\]"),
        ('sources = ["py", "mlir"]', "sources = []", r"entry 1 \(gelu wide\): it is for no source"),
        ('gpu = "NVIDIA H200"', "", r"entry 1: measured: it has no gpu"),
        ('"M=8 N=3072" = 2.5', '"M=8" = "fast"', r"measured: us is .*, not a table of times in microseconds"),
    ],
)
def test_a_file_that_is_wrong_says_where(write: Write, old: str, new: str, said: str) -> None:
    folder = write(old, new)
    with pytest.raises(UsageError, match=said):
        tuned.load_rows(folder)


def test_a_file_of_no_target(write: Write) -> None:
    folder = write(name="sm_7.toml")
    with pytest.raises(UsageError, match=r"sm_7\.toml: there is no target sm_7"):
        tuned.load_rows(folder)


def test_what_was_measured_with_other_things_is_stale(write: Write, kernel: Path) -> None:
    rows = tuned.load_rows(write())

    def reasons() -> list[str]:
        return [found.why for found in tuned.stale(rows, lambda _: Source(kernel))]

    assert reasons() == []
    kernel.write_text("another")
    assert reasons() == ["the kernel of source py has changed; the kernel of source mlir has changed"]
    kernel.unlink()
    assert reasons() == ["gelu_sm_90_wide_f16: there is no kernel; gelu_sm_90_wide_f16: there is no kernel"]


def test_another_compiler_makes_a_row_stale(write: Write, kernel: Path) -> None:
    (row,) = tuned.load_rows(write(tileiras(), "0" * 64))
    (found,) = tuned.stale([row], lambda _: Source(kernel))
    assert (found.row, found.why) == (row, "tileiras is another one")


def test_the_hash_of_a_kernel_is_of_names_and_texts() -> None:
    assert tuned.kernel_hash({"a": "1", "b": "2"}) == tuned.kernel_hash({"b": "2", "a": "1"})
    assert tuned.kernel_hash({"a": "1", "b": "2"}) != tuned.kernel_hash({"a": "1"})
    assert tuned.kernel_hash({"a": "1", "b": "2"}) != tuned.kernel_hash({"a": "2", "b": "1"})


def test_the_committed_rows_are_right() -> None:
    """Whatever stands in tuned/ gives entries that both sources can put first."""
    for source in ("mlir", "py"):
        tuned.put_first([], source)

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from toolchain.contract.targets import BYTECODE, targets
from toolchain.errors import UsageError
from toolchain.pinned import compatibility
from toolchain.pinned.compatibility import COMPATIBILITY, Misfit, table, why_refused
from toolchain.pinned.pins import pins
from toolchain.pinned.stacks import stacks

MAGIC = b"\x7fTileIR\x00"
FIT = {"tileiras": "13.5.37", "libnvvm": "13.5.37", "ptxas": "13.5.37"}


def bytecode(major: int, minor: int) -> bytes:
    return MAGIC + bytes([major, minor, 0, 0]) + b"the rest"


def test_the_pinned_tools_are_in_the_table_and_fit():
    wheels = pins().wheels
    tileiras, libnvvm, ptxas = (wheels[f"nvidia-{name}"] for name in ("cuda-tileiras", "nvvm", "cuda-nvcc"))
    row = table().of_tileiras(tileiras)
    assert row is not None and row.version == tileiras
    assert table().of_cuda(ptxas) is not None
    assert compatibility.tools_fit(tileiras, libnvvm, ptxas) is None
    assert compatibility.bytecode_fits(tileiras, BYTECODE) is None
    assert set(row.targets) == set(targets())


def test_versions_stand_in_order_and_nothing_is_taken_away():
    rows = table().tileiras
    assert list(rows) == sorted(rows, key=lambda row: compatibility.number(row.version))
    for older, newer in itertools.pairwise(rows):
        assert set(older.bytecode) <= set(newer.bytecode) and set(older.targets) <= set(newer.targets)
    assert all(any(min_bytecode == read for row in rows for read in row.bytecode) for min_bytecode in ("13.1", "13.5"))


def test_an_unknown_patch_release_counts_as_the_newest_of_its_minor():
    assert (row := table().of_tileiras("13.4.200")) is not None and row.version == "13.4.92"
    assert table().of_tileiras("14.0.1") is None
    assert why_refused("tileiras", FIT | {"tileiras": "14.0.1"}, bytecode(13, 4), "sm_90") is None


@pytest.mark.parametrize(
    ("versions", "code", "target", "pair"),
    [
        ({"tileiras": "13.2.86"}, bytecode(13, 5), "sm_100", "tileiras 13.2.86 does not read bytecode 13.5"),
        ({"tileiras": "13.1.80"}, bytecode(13, 2), "sm_100", "tileiras 13.1.80 does not read bytecode 13.2"),
        ({}, bytecode(13, 9), "sm_90", "tileiras 13.5.37 does not read bytecode 13.9"),
        ({"tileiras": "13.3.36"}, bytecode(13, 3), "sm_107", "no target sm_107, which tileiras 13.4.59 brought"),
        ({"tileiras": "13.1.80"}, bytecode(13, 1), "sm_90", "no target sm_90, which tileiras 13.3.36 brought"),
        ({}, bytecode(13, 4), "sm_90a", "tileiras 13.5.37 has no target sm_90a"),
        ({"ptxas": "13.4.92"}, bytecode(13, 4), "sm_90", "libnvvm 13.5.37 writes PTX that ptxas 13.4.92 is too old"),
        ({"libnvvm": "13.2.86"}, bytecode(13, 4), "sm_90", "needs libnvvm 13.3 or newer, not 13.2.86"),
        ({}, MAGIC + b"\x0d", "sm_90", "9 bytes that do not begin with a whole header"),
    ],
)
def test_what_tileiras_refuses(versions: dict[str, str], code: bytes, target: str, pair: str):
    found = why_refused("tileiras", FIT | versions, code, target)
    assert found is not None and pair in found.pair and found.next


def test_what_fits_is_not_blamed():
    assert why_refused("tileiras", FIT, bytecode(13, 4), "sm_90") is None
    for libnvvm, ptxas in (("13.3.73", "13.3.73"), ("13.4.92", "13.5.37")):
        assert why_refused("tileiras", FIT | {"libnvvm": libnvvm, "ptxas": ptxas}, bytecode(13, 4), "sm_90") is None
    for written, chip in (("sm_80", "sm_90"), ("sm_90a", "sm_90a"), ("sm_100f", "sm_103f")):
        assert why_refused("ptxas", {"ptxas": "13.5.37"}, ptx("9.5", written), chip) is None


def test_a_hint_that_came_later_than_its_bytecode_version():
    said = "error: error at offset 269: unallowed key default\nerror: failed to parse OptimizationHintsAttr"
    older = FIT | {"tileiras": "13.2.86"}
    assert (found := why_refused("tileiras", older, bytecode(13, 2), "sm_100", said)) is not None
    assert "tileiras 13.2.86 does not read the optimization hint 'default', which tileiras 13.3.36" in found.pair
    assert why_refused("tileiras", older, bytecode(13, 2), "sm_100", "unallowed key other") is None
    said = "error: error at offset 18: unknown param num_worker_warps_per_cta for sm_90"
    found = why_refused("tileiras", older, bytecode(13, 2), "sm_100", said)
    assert found and "does not read the optimization hint 'num_worker_warps_per_cta'" in found.pair
    assert why_refused("tileiras", FIT, bytecode(13, 2), "sm_100", said) is None


def ptx(version: str, target: str) -> bytes:
    return f".version {version}\n.target {target}\n.address_size 64\n".encode()


@pytest.mark.parametrize(
    ("ptxas", "code", "chip", "pair"),
    [
        ("13.5.37", ptx("9.9", "sm_90"), "sm_90", "reads PTX up to 9.5, and this is PTX 9.9"),
        ("13.2.86", ptx("9.3", "sm_90"), "sm_90", "ptxas 13.2.86 reads PTX up to 9.2"),
        ("13.3.73", ptx("8.0", "sm_107"), "sm_107", "no target sm_107, which ptxas 13.4 brought"),
        ("13.5.37", ptx("8.0", "sm_90"), "sm_80", "PTX for sm_90 cannot become a cubin for sm_80"),
        ("13.5.37", ptx("8.0", "sm_90a"), "sm_100", "PTX for sm_90a cannot become a cubin for sm_100"),
        ("13.5.37", ptx("9.0", "sm_100f"), "sm_120f", "PTX for sm_100f cannot become a cubin for sm_120f"),
    ],
)
def test_what_ptxas_refuses(ptxas: str, code: bytes, chip: str, pair: str):
    found = why_refused("ptxas", {"ptxas": ptxas}, code, chip)
    assert found is not None and pair in found.pair and found.next


def test_a_driver_loads_cubins_of_its_major_but_no_newer_ptx():
    assert compatibility.driver_fits((13, 0)) is None
    assert compatibility.driver_fits((14, 0)) is None
    assert compatibility.driver_fits((12, 9)) == Misfit(
        "the NVIDIA driver offers CUDA 12.9; these cubins need CUDA 13.0, driver 580 or newer",
        "install NVIDIA driver 580 or newer, or run on the CPU",
    )
    assert compatibility.jit_fits((13, 5), "9.5") is None
    assert (found := compatibility.jit_fits((13, 0), "9.5")) is not None
    assert "offers CUDA 13.0, and PTX 9.5 needs CUDA 13.5" in found.pair


@pytest.mark.parametrize(
    ("wrong", "right", "said"),
    [
        ('source = "measured"', 'source = "rumour"', "tileiras: its source 'rumour' is not in [sources]"),
        ('bytecode = ["13.1"]', 'bytecode = "13.1"', "bytecode is '13.1', not a list of texts"),
        ("minimum = 450", 'minimum = "450"', "driver: minimum is '450', not an integer"),
        ("cuda = 11\n", "", "driver: it has no cuda"),
    ],
)
def test_a_wrong_row_is_named(wrong: str, right: str, said: str, tmp_path: Path):
    path = tmp_path / "compatibility.toml"
    path.write_text(COMPATIBILITY.read_text().replace(wrong, right, 1))
    with pytest.raises(UsageError) as caught:
        compatibility.load(path)
    assert str(path) in str(caught.value) and said in str(caught.value)


def test_every_stack_has_a_row_of_its_cuda_tile_and_what_it_does_not_know_is_named():
    for stack in stacks().stacks.values():
        row = table().of_cuda_tile(stack.cuda_tile)
        assert row is not None and row.version == stack.cuda_tile
    old, new = table().of_cuda_tile("13.1.3"), table().of_cuda_tile("13.3.9")
    assert old is not None and new is not None and new.version == "13.3.2"
    assert old.bytecode == ("13.1",) and "13.3" in new.bytecode
    assert old.lacks_hint("num_worker_warps_per_cta") and old.lacks_target("default") and not old.lacks_hint("latency")
    assert not new.lacks_hint("num_worker_warps_per_cta") and not new.lacks_target("default")
    assert table().of_cuda_tile("14.0.0") is None

"""The published rates of GPUs, and how much room a multiprocessor has."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolchain.contract.targets import targets
from toolchain.errors import UsageError
from tune import devices
from tune.devices import Device, device_of


def test_every_target_that_is_compiled_by_default_has_a_device() -> None:
    assert {target.name for target in targets().values() if target.default} <= devices.devices().keys()


@pytest.mark.parametrize(("target", "flops"), [("sm_80", 2048), ("sm_90", 4096), ("sm_100", 8192), ("sm_120", 512)])
def test_peak_clock_and_multiprocessors_fit_together(target: str, flops: int) -> None:
    """A multiprocessor of each kind does a power of two of operations a clock."""
    assert device_of(target).flops == pytest.approx(flops, rel=0.01)


def test_room_for_blocks_is_bounded_by_registers_and_shared_memory() -> None:
    device = device_of("sm_80")
    assert device.holds(255, 163840, 8, 1) and not device.holds(255, 163840, 8, 2), "64 Ki registers"
    assert device.holds(128, 80 * 1024, 4, 2) and not device.holds(128, 84 * 1024, 4, 2), "164 KiB, 1 for each block"
    assert not device.holds(128, 164 * 1024, 4, 1), "a block may have 163 KiB"


@pytest.mark.parametrize(("target", "readers"), [("sm_80", 8), ("sm_90", 2), ("sm_100", 1), ("sm_120", 8)])
def test_who_reads_operands(target: str, readers: int) -> None:
    assert device_of(target).readers(8) == readers


def test_a_target_of_which_no_rates_are_known() -> None:
    with pytest.raises(UsageError, match=r"no GPU of sm_87 are in devices\.toml\n  next: add a row"):
        device_of("sm_87")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[sm_80]", "[sm_81]", r":\d+: sm_81: there is no such target"),
        ("sms = 108", 'sms = "many"', r":\d+: sm_80: sms is 'many', not a number above 0"),
        ("mhz = 1410\n", "", r":\d+: sm_80: it has no mhz"),
        ('operands = "warp"', 'operands = "thread"', r"operands is 'thread', not one of warp, group, block"),
    ],
)
def test_a_row_that_is_wrong_is_named(
    old: str, new: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = devices.DEVICES.read_text()
    assert old in content
    (tmp_path / "devices.toml").write_text(content.replace(old, new, 1))
    monkeypatch.setattr(devices, "DEVICES", tmp_path / "devices.toml")
    with pytest.raises(UsageError, match=said):
        devices.devices.__wrapped__()


def test_a_row_names_where_its_numbers_are_published() -> None:
    fields = {"sms", "mhz", "tflops", "gbytes", "l2_bytes", "shared", "shared_block", "f32"}
    assert fields <= Device.__dataclass_fields__.keys()
    for target, row in devices.read_table(devices.DEVICES).items():
        named = " ".join(row["from"])
        assert {field for field in fields if field not in named} == set(), target

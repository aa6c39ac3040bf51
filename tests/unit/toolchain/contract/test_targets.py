from __future__ import annotations

import pytest

from toolchain.compiling.pipeline import check_targets
from toolchain.contract.targets import BYTECODE, select, targets
from toolchain.errors import UsageError


def test_a_name_and_its_compute_capability_agree():
    for name, target in targets().items():
        major, minor = target.compute_capability
        assert name == target.name == f"sm_{major}{minor}"


def test_every_target_takes_the_bytecode_that_is_made_by_default():
    check_targets(targets().values(), BYTECODE)


def test_selection():
    assert [t.name for t in select([])] == ["sm_80", "sm_90", "sm_100", "sm_120"]
    assert len(select(["all"])) == 12
    assert [t.name for t in select(["sm_90", "sm_86", "sm_90"])] == ["sm_90", "sm_86"]


@pytest.mark.parametrize("name", ["sm_90a", "sm90", "all,sm_90", ""])
def test_an_unknown_target_is_an_error_that_lists_the_known(name: str):
    with pytest.raises(UsageError, match="sm_121"):
        select([name])


@pytest.mark.parametrize(
    ("target", "device", "runs"),
    [
        ("sm_80", (8, 0), True),
        ("sm_80", (8, 9), True),
        ("sm_86", (8, 0), False),
        ("sm_80", (9, 0), False),
        ("sm_90", (9, 0), True),
        ("sm_100", (10, 3), False),
        ("sm_120", (12, 1), False),
    ],
)
def test_which_device_runs_which_cubin(target: str, device: tuple[int, int], runs: bool):
    assert targets()[target].runs_on(device) is runs

"""`ci/matrix.toml`, and tables that are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci.matrix import TABLE, Matrix
from toolchain.contract.sources import packages
from toolchain.contract.targets import targets
from toolchain.errors import UsageError
from toolchain.pinned.pins import pins


def test_the_table_is_right_and_its_newest_compiler_is_the_pinned_one() -> None:
    matrix = Matrix.load()
    assert matrix.tools["tileiras"][-1] == pins().wheels["nvidia-cuda-tileiras"]
    assert matrix.hosted.name == "hosted"
    assert set(matrix.events["nightly"].targets) == set(targets())
    for event in matrix.events.values():
        assert set(event.sources) == set(packages()), f"{event.name} checks every kernel source"


def test_a_compile_depends_on_every_kernel_source() -> None:
    assert set(packages().values()) <= set(Matrix.load().modules["compile"])


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("jobs = 256", 'jobs = "256"', "[limits]: jobs is '256'"),
        ("gpu_cell = 0.25", "gpu_cell = 0", "[seconds]: gpu_cell is 0, not a number above 0"),
        ("gpu_cell = 0.25", "gpu_sell = 0.25", "unknown gpu_sell"),
        ('target = "sm_90"\nimage = ""\n\n[[runner]]', '\n[[runner]]', "h100 has either a gpu and a target"),
        ('target = "sm_90"', 'target = "sm_91"', "no target sm_91"),
        ('runners = ["h200"]', 'runners = ["h300"]', "runners: unknown h300"),
        ('runners = ["h200"]', 'runners = ["hosted"]', "runners: unknown hosted"),
        ('sources = ["mlir", "py", "cute"]', 'sources = ["c"]', "sources: unknown c"),
        ('required = "."', 'required = "("', "required is not a regular expression"),
        ("[event.nightly]", "[event.weekly]", "the events are pull_request, nightly, release; see nightly, weekly"),
        ("[stage.gate]", "[stage.date]", "it has no [stage.gate]"),
        ('stages = ["gate"]', 'stages = ["date"]', "no stage date"),
        ('gpu = "NVIDIA H100 80GB HBM3"\ntarget = "sm_90"\nimage = ""\n', "", "one runner has no GPU"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_the_table_is_named_with_its_file(old: str, new: str, said: str, tmp_path: Path) -> None:
    text = TABLE.read_text()
    assert old in text
    wrong = tmp_path / "matrix.toml"
    wrong.write_text(text.replace(old, new, 1))
    with pytest.raises(UsageError) as raised:
        Matrix.load(wrong)
    assert said in str(raised.value) and str(wrong) in str(raised.value)

"""Each example, on the interpreter: what it prints is right."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from toolchain.knobs import ROOT, one_numpy_thread

from .said import FOLDER, answers, differences, said

pytestmark = pytest.mark.needs("toolchain")


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also on a machine with a GPU."""
    monkeypatch.setattr("toolchain.runtime.gpus", tuple)
    monkeypatch.setattr("toolchain.runtime.peers.group.gpus", tuple)


def test_01_adds_and_clamps() -> None:
    text = said("01_tile_basics")
    assert f"$ python examples/01_tile_basics.py\n{text}```" in (ROOT / "docs/examples.md").read_text()
    lines = text.splitlines()
    assert lines[0] == "on the interpreter, on the CPU: 3 blocks, tiles of 4"
    assert lines[1:4] == [f"block {block} adds a tile" for block in range(3)]
    assert lines[4].split("[")[1] == "100. 101. 102. 103. 104. 105. 106. 107. 108. 109.]"
    assert lines[5].split("[")[1] == "0. 1. 2. 3. 4. 5. 5. 5. 5. 5.]"


def test_02_reduces_and_scans() -> None:
    text = said("02_reduce")
    assert answers(text) == [True] * 3
    assert len(differences(text)) == 2 and max(differences(text)) < 1e-4  # sums of 100 numbers around 1, in f32


def test_03_broadcasts() -> None:
    text = said("03_broadcast")
    assert answers(text) == [True]
    assert "[  2. 102. 202. 302.]" in text and "[200. 201. 202. 203.]" in text


def test_04_is_a_layernorm() -> None:
    (difference,) = differences(said("04_layernorm"))
    assert difference < 1e-5  # numbers up to 10, in f32


def test_05_is_attention() -> None:
    (difference,) = differences(said("05_attention"))
    assert difference < 2e-3  # an f16 has 11 bits, the results are up to 2


def test_06_takes_the_hints_of_each_target() -> None:
    text = said("06_matmul_hints")
    (difference,) = differences(text)
    assert difference < 1e-4  # sums of 96 products of numbers around 1, in f32
    assert "sm_100 = {num_cta_in_cga = 2}" in text and "sm_90 = {num_worker_warps_per_cta = 8}" in text
    assert re.findall(r"^(sm_\d+) .*, (\w+) x\d+$", text, re.MULTILINE) == [
        ("sm_80", "HMMA"), ("sm_90", "HGMMA"), ("sm_100", "UTCHMMA"),
    ]  # fmt: skip


def test_07_has_the_same_numbers_from_both_sources() -> None:
    text = said("07_two_sources_one_op")
    assert re.findall(r"^(\w+) *: entry", text, re.MULTILINE) == ["mlir", "py"]
    assert len(differences(text)) == 3 and max(differences(text)) < 1e-6


def test_08_finds_the_race_and_repairs_it() -> None:
    text = said("08_sanitizer_finds_a_bug")
    assert re.search(r"08_sanitizer_finds_a_bug\.py:23:\d+ in block \(1, 0, 0\) reads byte \d+ .* writes", text)
    assert answers(text) == [True, True]


@pytest.mark.needs("torch")
def test_09_is_an_operator_of_pytorch() -> None:
    found = differences(said("09_torch_custom_op"))
    assert len(found) == 2 and found[0] < 1e-5 and found[1] < 1e-2  # the second is of a sum of 5000 numbers


def test_09_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(SystemExit, match=r"needs PyTorch.*pip install torch"):
        said("09_torch_custom_op")


def test_10_launches_without_a_compiler() -> None:
    text = said("10_aot_bundle")
    assert "files: *.cubin *.json *.tilebc\n" in text
    assert "<kernel gelu_any_f32(x: f32[?, ?], out: f32[?, ?] written)>" in text
    assert max(differences(text)) < 1e-6
    assert "in C++: void gelu_f32(Array<float, 2> x, Array<float, 2> out, CUstream stream = nullptr)\n" in text


def test_11_learns_a_rhyme_by_heart() -> None:
    """In a process with one thread, since several get in each other's way with matrices as small as these."""
    with one_numpy_thread():
        done = subprocess.run([sys.executable, FOLDER / "11_own_checkpoint.py"], capture_output=True, text=True)
    assert "Three, four, knock at the" in done.stdout, done.stderr
    losses = [float(loss) for loss in re.findall(r"loss ([\d.]+) nats", done.stdout)]
    assert losses == sorted(losses, reverse=True) and losses[-1] < 0.5


def test_12_waits_and_says_what_is_wrong() -> None:
    text = said("12_blocks_that_wait")
    assert answers(text) == [True] * 4
    file = r"12_blocks_that_wait\.py:"
    wrong = [
        rf"{file}25:\d+ in block .* writes .*{file}26:\d+ .* did not wait, it read 4 from before the launch",
        rf"deadlock.* block \(0, 0, 0\) and 3 more at atomic_rmw_tko at .*{file}29:\d+, .* holds 4, .*{file}26:",
        rf"{file}47:\d+ in block .* reads .*{file}38:.*{file}42:\d+ in block \(1, 0, 0\) is no release",
        rf"deadlock.* and 2 more at atomic_cas_tko at .*{file}55:\d+, .* holds 1, last written by .*{file}53:",
        rf"{file}79:\d+ in block .* reads .*{file}69:.*{file}78:\d+ in block \(0, 0, 0\) is no acquire",
    ]
    said_of = [line for line in text.splitlines() if line.startswith("  wrong: ")]
    assert len(said_of) == len(wrong)
    for line, pattern in zip(said_of, wrong, strict=True):
        assert re.search(pattern, line), line


def test_13_multiplies_on_two_devices() -> None:
    text = said("13_several_devices")
    assert re.findall(r"^(\w+), on (.*)$", text, re.MULTILINE) == [
        (split, "cpu interpreter, rank 0 of 2, cpu interpreter, rank 1 of 2") for split in ("m", "n", "k", "mn")
    ]
    assert len(differences(text)) == 4 and max(differences(text)) < 1e-4  # sums of 48 products of numbers around 1

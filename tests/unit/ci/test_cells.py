"""Cells by name, and the commands that run them again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ci.cells import RerunOptions, failed, grouped, parse
from conformance.results.result import CellResult, Results, Status
from tilestack.__main__ import parser
from toolchain.errors import UsageError


def test_a_name_is_a_cell_and_back() -> None:
    for name in ("gelu-mlir-bf16-sm_90", "forward-py-f32-cpu"):
        assert str(parse(name)) == name


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gelu", "'gelu' is not a cell"), ("gelu-mlir-bf16-sm_90-x", "is not a cell"),
        ("gelo-mlir-bf16-sm_90", "did you mean gelu?"), ("gelu-mlir-bf61-sm_90", "no dtype 'bf61'"),
        ("gelu-rust-bf16-sm_90", "no source 'rust'"), ("gelu-mlir-bf16-sm_99", "no target 'sm_99'"),
    ],
)  # fmt: skip
def test_a_name_that_is_wrong_says_which_part(name: str, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse(name)
    assert said in str(raised.value)


def commands(again: RerunOptions, *names: str) -> Sequence[Sequence[str]]:
    return again.commands([parse(name) for name in names])


def words(command: Sequence[str]) -> Sequence[str]:
    return command[3:]


def test_a_cell_is_compiled_and_run() -> None:
    compiled, run = commands(RerunOptions(seed=7), "gelu-mlir-bf16-sm_90")
    assert " ".join(words(compiled)).startswith("compile --target sm_90 --source mlir --dtype bf16 --op gelu --force")
    assert " ".join(words(run)).endswith("--executor cuda --source mlir --dtype bf16 --op gelu --seed 7")


def test_cells_that_share_a_bundle_are_compiled_and_run_by_the_same_words() -> None:
    compiled, run = commands(RerunOptions(full=True), "gelu-py-f32-cpu", "forward-py-f32-cpu")
    assert " ".join(words(compiled)).startswith(
        "compile --no-targets --source py --dtype f32 --op gelu --op forward --force"
    )
    assert " ".join(words(run)).endswith(
        "--executor cpu --source py --dtype f32 --op gelu --op forward --seed 1 --full"
    )


def test_a_bundle_that_is_there_is_not_compiled() -> None:
    ((*_, executor, _, _, _, _, _, _, _, _),) = commands(
        RerunOptions(bundle=Path("b"), executor="cuda:1"), "gelu-py-f32-sm_90"
    )
    assert executor == "cuda:1"


@pytest.mark.parametrize("name", ["gelu-mlir-bf16-sm_90", "forward-py-f32-cpu"])
def test_the_command_line_takes_the_commands(name: str) -> None:
    for command in commands(RerunOptions(full=True), name):
        parser().parse_args(words(command))


def test_cells_of_one_bundle_share_a_command() -> None:
    names = ["gelu-py-f32-cpu", "gelu-mlir-f32-cpu", "softmax-py-f32-cpu"]
    assert [[cell.op for cell in group] for group in grouped(map(parse, names))] == [["gelu", "softmax"], ["gelu"]]


def results(path: Path, *outcomes: tuple[str, Status]) -> Path:
    rows = [CellResult(name, *_fields(name), "cpu", "N=1", status) for name, status in outcomes]
    path.write_text(Results({"seed": "3"}, rows).to_json())
    return path


def _fields(name: str) -> tuple[str, str, str, str]:
    cell = parse(name)
    return cell.source, cell.op, cell.dtype, cell.target


def test_the_cells_that_failed_in_a_run_are_named_once_with_its_seed(tmp_path: Path) -> None:
    outcomes = [("gelu-py-f32-cpu", "failed"), ("gelu-py-f32-cpu", "error"), ("softmax-py-f32-cpu", "passed")]
    cells, again = failed(results(tmp_path / "results.json", *outcomes))  # type: ignore[arg-type]
    assert ([str(cell) for cell in cells], again.seed) == (["gelu-py-f32-cpu"], 3)


def test_a_run_in_which_nothing_failed_is_said_to_be_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing failed in it: 1 passed"):
        failed(results(tmp_path / "results.json", ("gelu-py-f32-cpu", "passed")))

"""`tilestack reproduce`."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace

import pytest

from ci.cells import RerunOptions, parse
from conformance.cells import borrows_from
from gpt.conformance.models import forward_cases
from gpt.launches import DryExecutor, continue_texts, forward_passes, launched
from tilestack.__main__ import main, parser
from tilestack.api.bundles.selection import with_borrowed
from tilestack.cli.compile import chosen_entries
from toolchain.contract.sources import packages


@pytest.mark.parametrize(("codes", "ran", "ends"), [([0, 9], 2, 9), ([4, 0], 1, 4), ([0, 0], 2, 0)])
def test_commands_run_up_to_the_first_that_fails(
    codes: list[int], ran: int, ends: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    left = iter(codes)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=next(left)))
    assert main(["reproduce", "gelu-mlir-f32-cpu", "--run"]) == ends
    assert len(capsys.readouterr().out.splitlines()) == ran


@pytest.mark.parametrize("dtype", ["bf16", "f32", "tf32"])
@pytest.mark.parametrize("source", ["mlir", "cute"])
def test_what_is_compiled_for_a_model_is_all_that_its_cell_launches(source: str, dtype: str) -> None:
    (case,) = (case for case in forward_cases() if case.model == "shipped")
    compiled, _ = RerunOptions().commands([parse(f"forward-{source}-{dtype}-sm_90")])
    chosen = [spec for _, spec in chosen_entries(parser().parse_args(compiled[3:])) if spec.runs_on("sm_90")]
    specs = sorted(chosen, key=lambda spec: spec.source != source)  # its own first
    every = [spec for spec in with_borrowed(packages()[source]) if spec.runs_on("sm_90")]
    launches = []
    for bundle in (specs, every):
        executor = DryExecutor("sm_90", 132)
        for use in (forward_passes(*case.sizes), continue_texts([len(case.prompt)], 24)):
            launched(bundle, case.config, case.weights(), dtype, executor, use)
        launches.append(list(executor.launched))
    assert launches[0] == launches[1]
    assert {spec.source for spec in specs} == {source, *filter(None, [borrows_from(source)])}


def test_the_container_takes_no_executor(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "gelu-mlir-f32-cpu", "--container", "--executor", "cpu"]) == 2
    assert "leave one of the two out" in capsys.readouterr().err

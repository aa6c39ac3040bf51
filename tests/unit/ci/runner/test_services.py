from __future__ import annotations

from pathlib import Path

import pytest

from ci.runner.gpus import Gpu
from ci.runner.services import run

GPUS = [Gpu(str(n), f"GPU-{n}", "NVIDIA H200", "") for n in range(2)]


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return tmp_path


def test_a_sick_gpu_ends_its_own_service_alone_until_it_is_brought_back(here: Path) -> None:
    """Service 0 finds its GPU sick the first time; once the other one has seen that, somebody brings it back."""
    sick = f'[ "$(wc -l < {here}/0)" = 1 ] && {{ echo sick > {GPUS[0].reason(here)}; exit 7; }}'
    repair = f"until [ -e {here}/again ]; do rm -f {here}/sick-*; sleep 0.02; done"
    scripts = {
        "GPU-0": f"read token; echo $token >> {here}/0; {sick}; touch {here}/again",
        "GPU-1": f"read token; echo $token >> {here}/1; {repair}",
    }
    said: list[str] = []
    assert run(GPUS, lambda gpu: ["sh", "-c", scripts[gpu.uuid]], "secret", here, said.append, looks=0.02) == 0
    assert (here / "0").read_text() == "secret\nsecret\n" and (here / "1").read_text() == "secret\n"
    assert said[0] == "gpu 0 (NVIDIA H200, GPU-0): its service ended with 7" and len(said) == 3


def test_the_worst_end_is_told_and_one_that_fails_ends_no_other(here: Path) -> None:
    scripts = {"GPU-0": "exit 4", "GPU-1": f"sleep 0.1; touch {here}/done"}
    assert run(GPUS, lambda gpu: ["sh", "-c", scripts[gpu.uuid]], "secret", here, lambda _: None, looks=0.02) == 4
    assert (here / "done").exists()


def test_an_end_ends_them_all(here: Path) -> None:
    def say(_: str) -> None:
        raise SystemExit(143)

    scripts = {"GPU-0": f"trap 'touch {here}/ended; exit' TERM; touch {here}/up; while :; do sleep 0.02; done"}
    scripts["GPU-1"] = f"until [ -e {here}/up ]; do sleep 0.01; done; exit 4"
    with pytest.raises(SystemExit):
        run(GPUS, lambda gpu: ["sh", "-c", scripts[gpu.uuid]], "secret", here, say, looks=0.02)
    assert (here / "ended").exists()

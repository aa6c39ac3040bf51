"""A matrix also runs the checkpoints that it is asked for, with their own weights and their own tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest

from conformance.jobs.jobs import JobContext
from conformance.results.result import CellResult
from gpt.conformance import models
from gpt.conformance.forward import ForwardCase
from gpt.conformance.models import PROMPT, ForwardRows, checkpoint_case, cost, forward_cases, forward_jobs, suites
from gpt.parameters.weights import SHIPPED
from toolchain.errors import UsageError


def test_a_checkpoint_is_run_beside_the_models() -> None:
    usual = suites()["forward"].jobs(["bf16"], "cpu")
    more = suites([str(SHIPPED)])["forward"].jobs(["bf16"], "cpu")
    assert [job.shape for job in more] == [*(job.shape for job in usual), str(SHIPPED)]
    assert [job.shape for job in usual] == [case.model for case in forward_cases()]
    assert more[-1].rows == ForwardRows(str(SHIPPED), "bf16")


def test_a_checkpoint_has_its_own_weights_and_tokens() -> None:
    case = checkpoint_case(str(SHIPPED))
    assert bytes(case.tokens).decode() == case.prompt.decode() == PROMPT  # a tokenizer of bytes
    assert case.config == next(case for case in forward_cases() if case.model == "shipped").config
    assert "wte.weight" in case.weights()
    with pytest.raises(UsageError, match="nowhere"):
        suites(["./nowhere"])["forward"].jobs(["bf16"], "cpu")


def test_on_a_gpu_the_longest_size_is_a_job_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its two jobs have every size, and the text, once."""
    found: list[ForwardCase] = []

    def run(_site: object, case: ForwardCase, _dtype: str) -> Iterator[CellResult]:
        found.append(case)
        return iter(())

    monkeypatch.setattr(models, "run_forward", run)
    every = forward_jobs(["bf16"], "cuda")
    for number, case in enumerate(forward_cases()):
        jobs = every[2 * number : 2 * number + 2]
        found.clear()
        for job in jobs:
            assert list(job.rows(cast("JobContext", None))) == []
        rest, alone = found
        assert ((*rest.sizes, *alone.sizes), rest.prompt, alone.prompt) == (case.sizes, case.prompt, b"")
        assert [job.shape for job in jobs] == [case.model, case.shape(case.sizes[-1])]
        assert max(case.sizes, key=lambda size: size[0] * size[1]) == case.sizes[-1]
        assert sum(job.cost for job in jobs) == pytest.approx(cost(case, "bf16", "cuda"))

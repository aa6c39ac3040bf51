"""A matrix also runs the checkpoints that it is asked for, with their own weights and their own tokens."""

from __future__ import annotations

import pytest

from gpt.conformance.models import PROMPT, ForwardRows, checkpoint_case, forward_cases, suites
from gpt.weights import SHIPPED
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

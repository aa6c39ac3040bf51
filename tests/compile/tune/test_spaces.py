"""The committed search spaces name kernels that both sources have."""

from __future__ import annotations

import pytest

from tests.compile.conftest import MakeArtifact
from tune.spaces import load_spaces
from tune.variants import variants

SPACES = load_spaces()
MODELS = [space for name in SPACES.models for space in SPACES.of(name)]


@pytest.mark.parametrize("source", ["mlir", "py"])
@pytest.mark.parametrize("space", MODELS, ids=lambda space: space.name)
def test_each_space_of_a_model_has_a_kernel_with_its_constants(
    space: object, source: str, artifact: MakeArtifact
) -> None:
    """Its first variant has bytecode: an unknown kernel or constant, and a size that it cannot take, are errors."""
    assert isinstance(space, type(MODELS[0]))
    spec = next(made.spec for made in variants(space, source, "sm_90") if made.spec.dtype == "bf16")
    assert artifact(spec).payload

"""Descriptors for the copy engine: what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.cute_runtime.tma_cases import CASES, Case
from toolchain.contract.tma import TMADescriptor
from toolchain.errors import UsageError


def descriptor(case: Case) -> TMADescriptor:
    fields = case._asdict()
    del fields["says"]
    return TMADescriptor(**fields)


@pytest.mark.parametrize("case", CASES, ids=[case.says or "fits" for case in CASES])
def test_what_the_copy_engine_cannot_use_is_refused(case: Case) -> None:
    if not case.says:
        assert descriptor(case).sizes == tuple(case.sizes)
        return
    with pytest.raises(UsageError) as caught:
        descriptor(case)
    assert case.says in str(caught.value)


@pytest.mark.parametrize(("field", "value"), [("dtype", "f4"), ("swizzle", 16), ("l2_promotion", 32), ("fill", "one")])
def test_a_word_that_is_unknown(field: str, value: Any) -> None:
    fields: dict[str, Any] = {"dtype": "f32", "address": 0, "sizes": (4, 4), "strides": (16,), "box": (4, 4)}
    with pytest.raises(UsageError, match=f"{field} {value!r}: it must be one of"):
        TMADescriptor(**{**fields, field: value})

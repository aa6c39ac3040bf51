from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpt.arena import ALIGNMENT, Span, plan


def test_buffers_that_do_not_meet_share_memory() -> None:
    placed = plan({"qkv": Span(3000, 1, 2), "attended": Span(1000, 2, 3), "hidden": Span(4096, 4, 5)})
    assert placed.offsets["hidden"] == 0
    assert placed.offsets["qkv"] == 0
    assert placed.offsets["attended"] >= 3000
    assert placed.nbytes == 4096
    assert plan({}).nbytes == 0


@given(
    st.lists(
        st.tuples(st.integers(0, 5000), st.integers(0, 9), st.integers(0, 9)).map(
            lambda row: Span(row[0], min(row[1:]), max(row[1:]))
        ),
        max_size=12,
    )
)
def test_buffers_that_meet_never_overlap(spans: list[Span]) -> None:
    named = {str(index): span for index, span in enumerate(spans)}
    placed = plan(named)
    for a, first in named.items():
        assert placed.offsets[a] % ALIGNMENT == 0
        assert placed.offsets[a] + first.nbytes <= placed.nbytes
        for b, second in named.items():
            if a < b and first.meets(second):
                apart = (
                    placed.offsets[a] + first.nbytes <= placed.offsets[b]
                    or placed.offsets[b] + second.nbytes <= placed.offsets[a]
                )
                assert apart, (first, second)
    assert placed.nbytes <= sum(-(-span.nbytes // ALIGNMENT) * ALIGNMENT for span in spans)

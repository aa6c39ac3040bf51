from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpt.passes.arena import ALIGNMENT, Span, plan


def test_buffers_that_do_not_meet_share_memory() -> None:
    spans = {"qkv": (3000, {1, 2}), "attended": (1000, {2, 3}), "hidden": (4096, {4, 5}), "normed": (1024, {0, 3})}
    placed = plan({name: Span(nbytes, frozenset(steps)) for name, (nbytes, steps) in spans.items()})
    assert placed.offsets["hidden"] == 0
    assert placed.offsets["qkv"] == 0
    assert placed.offsets["attended"] >= 3000
    assert placed.offsets["normed"] == 0  # while qkv's contents do not matter, before and after
    assert placed.nbytes == 4096
    assert plan({}).nbytes == 0


@given(
    st.lists(
        st.builds(Span, st.integers(0, 5000), st.frozensets(st.integers(0, 9))),
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

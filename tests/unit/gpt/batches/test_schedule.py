"""What a changing batch computes: no page is lost or had by two, every text ends, each of its tokens is read once."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpt.batches.pages import PAGE, PIECE, Pages, pages_for
from gpt.batches.schedule import Schedule, Step, Text
from toolchain.errors import UsageError


def schedule(pages: int = 8, texts: int = 4, pieces: int = 8, positions: int = 4096) -> Schedule:
    return Schedule(Pages(pages), texts=texts, pieces=pieces, positions=positions)


def check(schedule: Schedule, step: Step, texts: list[Text]) -> None:
    """A step is one that a model can compute."""
    had = [page for text in texts for page in text.pages]
    assert len(set(had)) == len(had) == schedule.pages.count - schedule.pages.free
    rows = [*step.decoding, *{piece.text.number: piece.text for piece in step.pieces}.values()]
    assert len({text.number for text in rows}) == len(rows)
    for text in rows:
        assert len(text.pages) * PAGE >= text.cached
        assert len(text.pages) == pages_for(text.cached)  # memory follows the text
    assert all(piece.first % PIECE == 0 and 0 < piece.count <= PIECE for piece in step.pieces)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 300), st.integers(1, 140)), min_size=1, max_size=12),
    st.integers(7, 20), st.integers(1, 5), st.integers(1, 9), st.data(),
)  # fmt: skip
def test_everything_ends_whatever_comes_and_goes(
    sizes: list[tuple[int, int]], pages: int, texts: int, pieces: int, data: st.DataObject
) -> None:
    plan = schedule(pages, texts, pieces)
    waiting = list(sizes)
    there: dict[int, tuple[Text, int]] = {}
    read: dict[int, int] = {}
    ended, gone = 0, 0
    for _ in range(20_000):
        if (waiting and data.draw(st.integers(0, 3)) == 0) or not plan.busy:
            if not waiting:
                break
            size, count = waiting.pop()
            added = plan.add([0] * size, count)
            there[added.number] = (added, size + count)
        if there and data.draw(st.integers(0, 40)) == 0:
            plan.remove(there.pop(data.draw(st.sampled_from(sorted(there))))[0])
            gone += 1
        step = plan.next()
        check(plan, step, [text for text, _ in there.values()])
        for piece in step.pieces:  # in order, none left out; from 0 on again where a text was set back
            assert piece.first in (0, read.get(piece.text.number, 0))
            read[piece.text.number] = piece.first + piece.count
        for text in step.drawing:
            assert text.cached == len(text.tokens)
            if plan.push(text, 1):
                assert len(text.tokens) == there.pop(text.number)[1]
                ended += 1
    assert (ended + gone, plan.pages.free, there) == (len(sizes), pages, {})


def test_prompts_are_read_beside_texts_that_go_on() -> None:
    plan = schedule(pieces=2)
    first = plan.add([0] * 5, 10)
    assert plan.next().drawing == [first]
    plan.push(first, 7)
    second = plan.add([0] * 70, 2)
    steps: list[Step] = []
    for _ in range(3):
        steps.append(plan.next())
        plan.push(first, 7)
    assert [step.decoding for step in steps] == [[first]] * 3
    assert [[(p.first, p.count) for p in step.pieces] for step in steps] == [
        [(0, 16), (16, 16)], [(32, 16), (48, 16)], [(64, 6)]
    ]  # fmt: skip
    assert [len(step.drawing) for step in steps] == [1, 1, 2]
    assert steps[-1].drawing == [first, second]


def test_the_text_that_came_last_gives_way_and_begins_again() -> None:
    plan = schedule(pages=3)
    first, second = plan.add([0] * 60, 100), plan.add([0] * 60, 60)
    for _ in range(70):
        for text in plan.next().drawing:
            plan.push(text, 1)
    assert len(first.pages) == 3 - len(second.pages)
    assert len(first.tokens) == 130
    assert len(second.tokens) < 130  # it was set back, and has what it had
    while plan.busy:
        for text in plan.next().drawing:
            plan.push(text, 1)
    assert (len(first.tokens), len(second.tokens), plan.pages.free) == (160, 120, 3)


def test_a_text_that_gives_way_in_a_step_is_not_continued_by_it() -> None:
    """The long prompt takes its last page in a step that would also continue the short text."""
    plan = schedule(pages=22, texts=2, pieces=1)
    long, short = plan.add([0] * 1300, 2), plan.add([0], 200)
    drawn: list[list[Text]] = []
    while len(long.pages) < 21:
        step = plan.next()
        check(plan, step, [long, short])
        drawn.append(step.drawing)
        for text in step.drawing:
            plan.push(text, 1)
    assert drawn == [[short]] * 80 + [[]]
    assert (short.pages, short.cached, len(short.tokens)) == ([], 0, 81)


@pytest.mark.parametrize(
    ("tokens", "count", "message"),
    [(0, 5, "prompt is empty"), (5, 0, "by at least 1"), (500, 13, "500 tokens and 13 new ones are more than the 512")],
)  # fmt: skip
def test_a_text_that_cannot_be_continued_is_refused(tokens: int, count: int, message: str) -> None:
    plan = schedule()
    kept = plan.add([0] * 3, 1)
    with pytest.raises(UsageError, match=message):
        plan.add([0] * tokens, count)
    assert plan.next().drawing == [kept]


def test_an_ended_text_stays_ended() -> None:
    plan = schedule()
    text = plan.add([1], 1)
    assert plan.push(plan.next().drawing[0], 2)
    plan.remove(text)
    assert (plan.busy, plan.pages.free) == (False, 8)

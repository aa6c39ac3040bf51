"""Deciding which entry wins a contest."""

from __future__ import annotations

import pytest

from tune.catalogue import Catalogue
from tune.winners import Unfinished, Winner, decide

from .conftest import FEW, MANY, OWN, Fill


def winner(catalogue: Catalogue, measured: object) -> Winner:
    found = decide(catalogue, measured, FEW, "py")  # pyright: ignore[reportArgumentType]
    assert isinstance(found, Winner)
    return found


def test_the_lowest_geometric_mean_wins(catalogue: Catalogue, fill: Fill) -> None:
    # a is best on one shape and 4 times as slow on the other; b is within 1.5 of both
    found = winner(catalogue, fill({OWN: [9.0, 90.0], "a": [1.0, 40.0], "b": [1.5, 15.0], "c": [8.0, 10.0]}))
    assert found.candidate and found.candidate.spec.symbol == "b" and found.entrants == 3
    assert found.first and found.first.score == pytest.approx(1.5)
    assert found.runner_up and (found.runner_up.symbol, found.runner_up.score) == ("a", pytest.approx(2.0))
    assert found.own and found.own.times_us == {"M=1 N=256": 9.0, "M=16 N=256": 90.0}


@pytest.mark.parametrize("status", ["wrong", "dropped", "crashed", "hung", "error"])
def test_who_failed_on_one_shape_is_out(catalogue: Catalogue, fill: Fill, status: str) -> None:
    found = winner(catalogue, fill({OWN: [9.0, 9.0], "a": [1.0, status], "b": [5.0, 5.0], "c": [status, None]}))
    assert found.candidate and found.candidate.spec.symbol == "b" and found.runner_up is None


def test_of_equals_the_first_by_name(catalogue: Catalogue, fill: Fill) -> None:
    found = winner(catalogue, fill({OWN: [9.0, 9.0], "c": [2.0, 2.0], "b": [2.0, 2.0], "a": [2.0, 2.0]}))
    assert (found.candidate and found.candidate.spec.symbol, found.runner_up and found.runner_up.symbol) == ("a", "b")


def test_the_sources_own_entry_stays_unless_it_is_slower(catalogue: Catalogue, fill: Fill) -> None:
    found = winner(catalogue, fill({OWN: [2.0, 2.0], "a": [2.0, 2.0], "b": [3.0, 3.0], "c": [3.0, 3.0]}))
    assert found.candidate is None and found.first and found.first.symbol == "a"
    found = winner(catalogue, fill({OWN: [2.0, 2.0], "a": [1.99, 1.99], "b": [3.0, 3.0], "c": [3.0, 3.0]}))
    assert found.candidate is None, "it is not worth a row"
    found = winner(catalogue, fill({OWN: ["wrong", 2.0], "a": [4.0, 4.0], "b": [5.0, 5.0], "c": [5.0, 5.0]}))
    assert found.candidate and found.own is None


def test_a_class_whose_shapes_want_different_entries_shows(catalogue: Catalogue, fill: Fill) -> None:
    found = winner(catalogue, fill({OWN: [2.0, 4.0], "a": [1.0, 5.0], "b": [3.0, 5.0], "c": [3.0, 5.0]}))
    assert found.candidate and found.slower_on == ["M=16 N=256"]
    found = winner(catalogue, fill({OWN: [2.0, 4.0], "a": [1.0, 4.01], "b": [3.0, 5.0], "c": [3.0, 5.0]}))
    assert found.candidate and found.slower_on == []


def test_none_was_right(catalogue: Catalogue, fill: Fill) -> None:
    found = winner(catalogue, fill({OWN: [2.0, 2.0], "a": ["wrong", None], "b": [1.0, "hung"], "c": ["error", None]}))
    assert (found.candidate, found.first, found.runner_up) == (None, None, None)


def test_what_is_not_measured_to_its_end_is_not_decided(catalogue: Catalogue, fill: Fill) -> None:
    measured = fill({OWN: [2.0, 2.0], "a": [1.0, None], "b": [1.0, "unprepared"], "c": ["wrong", None]})
    assert decide(catalogue, measured, FEW, "py") == Unfinished(FEW, "py", 2)
    assert decide(catalogue, measured, MANY, "py") == Unfinished(MANY, "py", 3)
    assert decide(catalogue, measured, FEW, "mlir") is None


@pytest.mark.parametrize("status", ["error", "unprepared"])
def test_nothing_wins_that_did_not_race_the_sources_own(catalogue: Catalogue, fill: Fill, status: str) -> None:
    measured = fill({OWN: [2.0, status], **{symbol: [1.0, 1.0] for symbol in "abc"}})
    assert decide(catalogue, measured, FEW, "py") == Unfinished(FEW, "py", 1)

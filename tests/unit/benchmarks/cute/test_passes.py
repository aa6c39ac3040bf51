"""Which plans are tried, and what follows from their times. The passes themselves need a GPU."""

from __future__ import annotations

from benchmarks.cute.passes import TODAY, each_alone, together


def test_each_op_is_tried_from_each_source() -> None:
    plans = each_alone(["logits", "attention"])
    assert [*plans.values()] == [
        {}, {"logits": "mlir"}, {"logits": "cute"}, {"attention": "mlir"}, {"attention": "cute"},
    ]  # fmt: skip


def test_only_what_made_a_pass_faster_is_tried_together() -> None:
    plans = each_alone(["logits", "attention", "linear"])
    us = dict.fromkeys(plans, 101.0)
    us |= {TODAY: 100.0, "logits of cute": 97.0, "logits of mlir": 99.0, "linear of mlir": 98.0}
    assert together(us, plans) == {
        TODAY: {},
        "all of the fastest": {"logits": "cute", "linear": "mlir"},
        "all but logits": {"linear": "mlir"},
        "all but linear": {"logits": "cute"},
    }


def test_an_op_that_a_pass_lacks_has_no_time() -> None:
    plans = each_alone(["linear"])
    assert together({TODAY: 100.0, "linear of cute": 99.0}, plans) == {
        TODAY: {}, "all of the fastest": {"linear": "cute"},
    }  # fmt: skip

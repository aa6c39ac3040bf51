from __future__ import annotations

from tilestack.api.kernels.reading import parameters

from ...conftest import ADD_ONE
from ..conftest import SCALED, entry_of


def test_an_array_is_its_pointer_sizes_and_strides() -> None:
    x, factor, out = parameters(entry_of(SCALED))
    assert [str(p) for p in (x, factor, out)] == ["x: f32[?, ?]", "factor: f32", "out: f32[?, ?] written"]
    assert (x.kind, x.rank, x.strides, x.written, x.values) == ("array", 2, (None, 1), False, 5)
    assert (factor.kind, factor.values) == ("number", 1)
    assert out.written


def test_a_pointer_without_a_view_may_stand_alone() -> None:
    x, n = parameters(entry_of(ADD_ONE))
    assert (x.kind, x.rank, x.written, n.kind, n.dtype) == ("pointer", None, True, "number", "i32")


def test_numbers_that_are_used_otherwise_are_no_strides() -> None:
    """%x_unit would be the stride of the last dimension, which the view does not take from there."""
    used = SCALED.replace("make_partition_view %x_array", "make_partition_view %x_array", 1).replace(
        "%zero = constant <i32: 0> : !int", "%zero = subi %x_unit, %x_unit : !int"
    )
    x, *rest = parameters(entry_of(used))
    assert x.kind == "pointer" and [p.name for p in rest[:4]] == ["x_m", "x_n", "x_row", "x_unit"]


def test_promises_about_arguments() -> None:
    promised = SCALED.replace(
        "%x_array = make_tensor_view %x, shape = [%x_m, %x_n], strides = [%x_row, 1]",
        "%p = assume div_by<16>, %x : tile<ptr<f32>>\n  %s = assume div_by<4>, %x_row : !int\n"
        "  %x_array = make_tensor_view %p, shape = [%x_m, %x_n], strides = [%s, 1]",
    )
    assert parameters(entry_of(promised))[0].divisors == {0: 16, 3: 4}


def test_what_an_atomic_operation_reaches_is_written() -> None:
    atomic = """
entry @count(%x: tile<ptr<i32>>, %y: tile<ptr<i32>>) {
  %one = constant <i32: 1> : tile<i32>
  %old, %t = atomic_rmw_tko relaxed device %y, add, %one : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
  return
}
"""
    x, y = parameters(entry_of(atomic))
    assert (x.written, y.written) == (False, True)


def test_known_ranks_and_names() -> None:
    found = parameters(entry_of(SCALED), [2, 2], ["a", "b", "c"])
    assert [(p.name, p.rank) for p in found] == [("a", 2), ("b", None), ("c", 2)]
    assert found[0].strides == (None, None)

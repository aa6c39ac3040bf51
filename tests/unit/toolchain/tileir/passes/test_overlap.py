"""Kernels wait for the previous launch: where the wait is put, and errors in kernels that place it themselves."""

from __future__ import annotations

import re
from typing import Any

import pytest

from toolchain.contract.entry import EntrySpec
from toolchain.errors import SourceError
from toolchain.tileir import bytecode, text
from toolchain.tileir.dialect import ops, verify
from toolchain.tileir.passes.overlap import settle

SPEC = EntrySpec("k", "layernorm", "mlir", "f32")  # which may read weight and bias early
VIEW = "partition_view<tile=(4), tensor_view<?xf32, strides=[1]>>"
INTS = VIEW.replace("f32", "i32")
POINTER, REAL = "tile<ptr<f32>>", "tile<f32>"
HEAD = """
entry @k(%x: tile<ptr<f32>>, %n: tile<i32>, %c: tile<i32>, %xs: tile<i32>, %xu: tile<i32>,
    %w: tile<ptr<f32>>, %wc: tile<i32>, %wu: tile<i32>, %b: tile<ptr<f32>>, %bc: tile<i32>, %bu: tile<i32>,
    %out: tile<ptr<f32>>, %on: tile<i32>, %oc: tile<i32>, %os: tile<i32>, %ou: tile<i32>, %eps: tile<f32>) {
%one = constant <i32: 1> : tile<i32>
%yes = cmpi less_than %one, %n, signed : tile<i32> -> tile<i1>
"""
READ_X = "%v, %t = load_ptr_tko weak %x : tile<ptr<f32>> -> tile<f32>, token"
READ_W = "%e, %te = load_ptr_tko weak %w : tile<ptr<f32>> -> tile<f32>, token"
STORE = "%s = store_ptr_tko weak %out, %eps : tile<ptr<f32>>, tile<f32> -> token"
WAIT = "%ready = gdc_wait_tko -> token"


def read(array: str, name: str, token: str = "") -> str:
    after = f" token = %{token}" if token else ""
    return f"%{name}, %{name}_t = load_ptr_tko weak %{array}{after} : tile<ptr<f32>> -> tile<f32>, token"


def store(token: str) -> str:
    return f"%s = store_ptr_tko weak %out, %eps token = %{token} : tile<ptr<f32>>, tile<f32> -> token"


def settled(*lines: str, version: tuple[int, int] = (13, 4)) -> ops.ModuleOp:
    """The kernel of these lines, settled; it verifies, and can be written in that version."""
    module = text.parse("\n".join((HEAD, *lines, "return", "}")), filename="k.mlir")
    settle(module.entries["k"], SPEC, version)
    verify(module)
    bytecode.write(module, ".".join(map(str, version)))
    return module


def found(module: ops.ModuleOp, kind: Any) -> list[Any]:
    return [op for op in module.walk() if isinstance(op, kind)]


def names(of: ops.ModuleOp) -> list[str]:
    """The names of the operations in the entry's own block."""
    return [op.name.removeprefix("cuda_tile.") for op in of.entries["k"].body.block.ops]


def accesses(module: ops.ModuleOp) -> list[Any]:
    return found(module, ops.LoadPtrTkoOp | ops.LoadViewTkoOp | ops.StorePtrTkoOp | ops.AtomicRMWTkoOp)


def test_a_kernel_that_says_nothing_waits_just_before_its_first_access() -> None:
    module = settled(READ_X, "%square = mulf %v, %v rounding<nearest_even> : tile<f32>", STORE)
    assert names(module) == [
        "gdc_launch_dependents_tko", "constant", "cmpi", "gdc_wait_tko", "load_ptr_tko", "mulf", "store_ptr_tko",
        "return",
    ]  # fmt: skip
    (wait,) = found(module, ops.GdcWaitTkoOp)
    assert [op.token for op in accesses(module)] == [wait.result_token] * 2


@pytest.mark.parametrize(
    "lines",
    [
        ("for %i in (%one to %n, step %one) : tile<i32> {", READ_X, "continue", "}"),
        ("loop {", "if %yes {", STORE, "break", "}", "continue", "}"),
        ("if %yes {", "if %yes {", READ_X, "}", "} else {", STORE, "}"),
        ("if %yes {", "return", "}", READ_X),  # a block that ends at once has waited too
    ],
)
def test_a_first_access_within_a_loop_or_branch_is_waited_for_outside_of_it(lines: tuple[str, ...]) -> None:
    module = settled(*lines, STORE.replace("%s", "%last"))
    (wait,) = found(module, ops.GdcWaitTkoOp)
    assert names(module)[3:5] == ["gdc_wait_tko", lines[0].split()[0]]
    assert all(op.token is wait.result_token for op in accesses(module))


@pytest.mark.parametrize(
    "line",
    [
        f"%v, %t = load_view_tko weak %p[%one] : {VIEW}, tile<i32> -> tile<4xf32>, token",
        f"%t = store_view_tko weak %four, %p[%one] : tile<4xf32>, {VIEW}, tile<i32> -> token",
        "%v, %t = load_ptr_tko weak %x, %yes, %eps : tile<ptr<f32>>, tile<i1>, tile<f32> -> tile<f32>, token",
        "%t = store_ptr_tko weak %x, %eps, %yes : tile<ptr<f32>>, tile<f32>, tile<i1> -> token",
        f"%v, %t = atomic_rmw_tko relaxed device %x, addf, %eps, %yes : {POINTER}, {REAL}, tile<i1> -> {REAL}, token",
        f"%v, %t = atomic_cas_tko relaxed device %x, %eps, %eps : {POINTER}, tile<f32> -> tile<f32>, token",
        f"%t = atomic_red_view_tko relaxed device %q[%one], add, %fours : tile<4xi32>, {INTS}, tile<i32> -> token",
        '%t = print_tko "%f", %eps : tile<f32> -> token',
    ],
)
def test_each_kind_of_operation_takes_the_token(line: str) -> None:
    views = (
        "%four = constant <f32: 0.0> : tile<4xf32>",
        "%fours = constant <i32: 0> : tile<4xi32>",
        "%tensor = make_tensor_view %x, shape = [%n], strides = [1] : tile<i32> -> tensor_view<?xf32, strides=[1]>",
        f"%p = make_partition_view %tensor : {VIEW}",
        "%px = ptr_to_ptr %x : tile<ptr<f32>> -> tile<ptr<i32>>",
        "%ints = make_tensor_view %px, shape = [%n], strides = [1] : tile<i32> -> tensor_view<?xi32, strides=[1]>",
        f"%q = make_partition_view %ints : {INTS}",
    )
    module = settled(*views, WAIT, line, store("t"))
    first, last = [op for op in module.entries["k"].body.block.ops if hasattr(op, "token")][2:]
    assert first.token is found(module, ops.GdcWaitTkoOp)[0].result_token
    assert last.token.owner is first


def test_the_wait_takes_the_place_of_tokens_that_are_made() -> None:
    module = settled(
        "%t0 = make_token : token",
        "%t1 = make_token : token",
        read("x", "a", "t0"),
        "%t2 = for %i in (%one to %n, step %one) : tile<i32> iter_values(%carried = %t1) -> (token) {",
        read("x", "y", "carried"),
        "continue %y_t : token",
        "}",
        store("t2"),
    )
    (wait,) = found(module, ops.GdcWaitTkoOp)
    (loop,) = found(module, ops.ForOp)
    assert not found(module, ops.MakeTokenOp)
    assert names(module)[3:5] == ["gdc_wait_tko", "load_ptr_tko"]
    assert accesses(module)[0].token is loop.initValues[0] is wait.result_token


def test_what_a_kernel_says_itself_is_kept() -> None:
    """It may have a wait after reads of arguments that its op lists as early, and say where the next launch may
    begin."""
    wide = "tile<4xptr<f32>>"
    module = settled(
        READ_W,
        "%b1 = reshape %b : tile<ptr<f32>> -> tile<1xptr<f32>>",
        f"%b4 = broadcast %b1 : tile<1xptr<f32>> -> {wide}",
        "%places = iota : tile<4xi32>",
        f"%b5 = offset %b4, %places : {wide}, tile<4xi32> -> {wide}",
        "%bias, %t1 = load_ptr_tko weak %b5 : tile<4xptr<f32>> -> tile<4xf32>, token",
        "%tensor = make_tensor_view %w, shape = [%n], strides = [1] : tile<i32> -> tensor_view<?xf32, strides=[1]>",
        f"%p = make_partition_view %tensor : {VIEW}",
        "for %i in (%one to %n, step %one) : tile<i32> {",
        f"%part, %t2 = load_view_tko weak %p[%i] : {VIEW}, tile<i32> -> tile<4xf32>, token",
        "continue",
        "}",
        "%early = join_tokens %te, %t1 : token",
        "%ready = gdc_wait_tko token = %early -> token",
        READ_X,
        "%let = gdc_launch_dependents_tko -> token",
        STORE,
    )
    assert names(module)[-6:] == [
        "join_tokens", "gdc_wait_tko", "load_ptr_tko", "gdc_launch_dependents_tko", "store_ptr_tko", "return",
    ]  # fmt: skip
    assert len(found(module, ops.GdcLaunchDependentsTkoOp)) == 1
    (wait,) = found(module, ops.GdcWaitTkoOp)
    tokens = [op.token for op in accesses(module)]
    assert tokens == [None, None, None, wait.result_token, wait.result_token]


def test_what_the_wait_has_taken_need_not_be_taken_again() -> None:
    """A token that the wait took is not needed after it. Other tokens are kept."""
    module = settled(
        READ_W,
        read("b", "bias"),
        "%early = join_tokens %te, %bias_t : token",
        "%ready = gdc_wait_tko token = %early -> token",
        "%again = join_tokens %te, %early, %ready : token",
        store("again"),
        read("x", "y", "ready"),
        "%both = join_tokens %bias_t, %y_t, %ready : token",
        store("both").replace("%s", "%s2"),
        "%behind = join_tokens %te, %y_t : token",
        store("behind").replace("%s", "%s3"),
    )
    (wait,) = found(module, ops.GdcWaitTkoOp)
    first, bias, _, y, second, third = accesses(module)
    assert accesses(module)[2].token is wait.result_token
    assert list(second.token.owner.operands) == [y.result_token, wait.result_token]
    assert list(third.token.owner.operands) == [first.result_token, y.result_token]
    assert list(wait.token.owner.operands) == [first.result_token, bias.result_token]


def test_what_the_wait_has_taken_is_found_however_it_is_joined() -> None:
    """Each join takes the previous one twice, so the number of paths back doubles with each."""
    joins = [f"%j{i + 1} = join_tokens %j{i}, %j{i} : token" for i in range(1, 40)]
    module = settled(
        READ_W,
        "%j1 = join_tokens %te, %te : token",
        *joins,
        "%ready = gdc_wait_tko token = %j40 -> token",
        "%again = join_tokens %te, %ready : token",
        store("again"),
    )
    (wait,) = found(module, ops.GdcWaitTkoOp)
    assert accesses(module)[-1].token is wait.result_token


BEFORE = "only reads are allowed before the wait for the previous launch"
UNWAITED = (
    "is read without waiting for the previous launch, which may write it; before the wait it may read weight, bias"
)
ONCE = "a kernel must wait for the previous launch exactly once, outside of any loop or branch"
TOKEN = "its token must come from the wait for the previous launch, above it"
LOOP = "for %i in (%one to %n, step %one) : tile<i32>"
ADD = "%a, %ta = atomic_rmw_tko relaxed device %w, addf, %eps : tile<ptr<f32>>, tile<f32> -> tile<f32>, token"


@pytest.mark.parametrize(
    ("lines", "at", "said"),
    [
        ((READ_X, WAIT), 0, f"x {UNWAITED}"),
        ((READ_W, read("out", "o"), WAIT), 1, f"out {UNWAITED}"),
        ((f"{LOOP} {{", READ_X, "continue", "}", WAIT), 1, f"x {UNWAITED}"),
        # Which array is it?
        (
            (
                "%p = select %yes, %w, %x : tile<i1>, tile<ptr<f32>>",
                read("p", "a"), WAIT,
            ), 1, f"this {UNWAITED}",
        ),
        (
            (
                f"%p = {LOOP} iter_values(%q = %w) -> (tile<ptr<f32>>) {{", "continue %x : tile<ptr<f32>>", "}",
                read("p", "a"), WAIT,
            ), 3, f"this {UNWAITED}",
        ),
        (
            (
                "%pw = ptr_to_ptr %w : tile<ptr<f32>> -> tile<ptr<i64>>",
                "%at, %ti = load_ptr_tko weak %pw : tile<ptr<i64>> -> tile<i64>, token",
                "%p = int_to_ptr %at : tile<i64> -> tile<ptr<f32>>",
                read("p", "a"), WAIT,
            ), 3, f"this {UNWAITED}",
        ),
        # Nothing is written early, and nothing is fenced.
        ((STORE, WAIT), 0, BEFORE),
        ((ADD, WAIT), 0, BEFORE),
        ((READ_W, "%f = memory_fence_alias_tko %te", WAIT), 1, BEFORE),
        # Once, always, by every block.
        ((WAIT, WAIT.replace("ready", "again")), 1, ONCE),
        ((f"{LOOP} {{", WAIT, "continue", "}", STORE), 1, ONCE),
        (("if %yes {", WAIT, "}", STORE), 1, ONCE),
        (
            ("if %yes {", "return", "}", WAIT), 1,
            "a kernel may not end before it has waited for the previous launch",
        ),
        # What stands after the wait but does not wait for it.
        (("%t0 = make_token : token", WAIT, store("t0")), 2, TOKEN),
        (("%t0 = make_token : token", WAIT, read("x", "a", "t0")), 2, TOKEN),
        ((READ_W, read("b", "a"), WAIT, "%both = join_tokens %te, %a_t : token", store("both")), 4, TOKEN),
        ((READ_W, WAIT, ADD.replace("%eps :", "%eps token = %te :")), 2, TOKEN),
        # Only on some ways.
        (
            (
                READ_W, WAIT,
                "%t1 = if %yes -> (token) {", "yield %te : token", "} else {", "yield %ready : token", "}",
                store("t1"),
            ), 7, TOKEN,
        ),
        (
            (
                READ_W, WAIT,
                f"%t1 = {LOOP} iter_values(%carried = %te) -> (token) {{", "continue %ready : token", "}",  # no step
                store("t1"),
            ), 5, TOKEN,
        ),
        (
            (
                READ_W, WAIT,
                f"%t1 = {LOOP} iter_values(%carried = %ready) -> (token) {{", "if %yes {", "continue %te : token", "}",
                "continue %carried : token", "}",
                store("t1"),
            ), 8, TOKEN,
        ),
        (
            (
                READ_W, WAIT,
                f"%t1 = {LOOP} iter_values(%carried = %ready) -> (token) {{", read("x", "a", "carried"),
                "continue %te : token", "}",
            ), 3, TOKEN,
        ),
        (
            (
                READ_W, WAIT,
                f"%t1 = {LOOP} iter_values(%carried = %te) -> (token) {{", read("x", "a", "carried"),
                "continue %ready : token", "}",
            ), 3, TOKEN,
        ),
        (
            (
                READ_W, WAIT, "%t1 = loop iter_values(%carried = %ready) : token -> token {",
                "if %yes {", "break %te : token", "}", "continue %carried : token", "}",
                store("t1"),
            ), 8, TOKEN,
        ),
    ],
)  # fmt: skip
def test_what_breaks_the_rules_is_named_with_its_place(lines: tuple[str, ...], at: int, said: str) -> None:
    with pytest.raises(SourceError) as caught:
        settled(*lines)
    line, name = HEAD.count("\n") + 2 + at, re.search(r"(?:^|= )(\w+)", lines[at])
    assert name is not None
    place = f"k.mlir:{line}:{name.start(1) + 1}"
    assert str(caught.value) == f"{place}: error: k: cuda_tile.{name[1]}: {said}"


@pytest.mark.parametrize(
    "lines",
    [
        ("%both = join_tokens %te, %ready : token", store("both")),
        (
            f"%t1 = {LOOP} iter_values(%carried = %ready) -> (token) {{", read("x", "a", "carried"),
            "if %yes {", "continue %a_t : token", "}", "%more = join_tokens %te, %carried : token",
            "continue %more : token", "}", store("t1"),
        ),
        (
            "%t1 = loop iter_values(%carried = %ready) : token -> token {", "if %yes {", "break %carried : token", "}",
            read("x", "a", "carried"), "continue %a_t : token", "}", store("t1"),
        ),
        (
            "%t1 = if %yes -> (token) {", read("x", "a", "ready"), "yield %a_t : token",
            "} else {", "yield %ready : token", "}", store("t1"),
        ),
        (
            f"%t1, %t2 = {LOOP} iter_values(%other = %te, %carried = %ready) -> (token, token) {{",
            read("x", "a", "carried"), "continue %other, %a_t : token, token", "}", store("t2"),
        ),
        ('%p = print_tko "hello" -> token', store("p")),
        ("%f = memory_fence_alias_tko %ready", store("f")),
        (read("w", "late", "te"), store("ready")),  # an early read may be as late as it likes
    ],
)  # fmt: skip
def test_tokens_are_followed_through_loops_and_branches(lines: tuple[str, ...]) -> None:
    assert len(found(settled(READ_W, WAIT, *lines), ops.GdcWaitTkoOp)) == 1


@pytest.mark.parametrize(
    ("lines", "made"),
    [
        ((READ_X, STORE), 0),
        ((READ_W, WAIT, read("x", "a", "ready"), STORE), 1),
        ((READ_W, "%ready = gdc_wait_tko token = %te -> token", read("x", "a", "ready"), store("a_t")), 0),
        ((READ_W, "%let = gdc_launch_dependents_tko token = %te -> token", WAIT, store("let")), 1),
        (("if %yes {", "return", "}", WAIT, STORE), 1),  # rules for launches that overlap: these do not
    ],
)
def test_older_bytecode_has_neither_operation(lines: tuple[str, ...], made: int) -> None:
    module = settled(*lines, version=(13, 3))
    assert not found(module, ops.GdcWaitTkoOp | ops.GdcLaunchDependentsTkoOp)
    assert len(found(module, ops.MakeTokenOp)) == made
    for op in accesses(module):
        if op.token is not None and not isinstance(op.token.owner, ops.MakeTokenOp):
            assert isinstance(op.token.owner, ops.LoadPtrTkoOp)

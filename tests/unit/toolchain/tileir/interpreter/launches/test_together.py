"""Blocks that wait for each other: what they compute, in each schedule, and what is said of each kind of fault."""

from __future__ import annotations

import re

import numpy as np
import pytest

from toolchain.errors import SanitizerError, UsageError
from toolchain.tileir import text
from toolchain.tileir.interpreter import Allocation, Grid, Launch, Pointer, Prepared, launch_together
from toolchain.tileir.interpreter.launches import interleaving  # fmt: skip

# Block 0 waits for a flag that the last block sets once it has stored 7.
FLAG = """
entry @k(%data: tile<ptr<i32>>, %flag: tile<ptr<i32>>, %out: tile<ptr<i32>>) {
  %zero = constant <i32: 0> : tile<i32>
  %one = constant <i32: 1> : tile<i32>
  %seven = constant <i32: 7> : tile<i32>
  %block, %y, %z = get_tile_block_id : tile<i32>
  %blocks, %ny, %nz = get_num_tile_blocks : tile<i32>
  %last = subi %blocks, %one : tile<i32>
  %produces = cmpi equal %block, %last, signed : tile<i32> -> tile<i1>
  if %produces {
    %stored = store_ptr_tko weak %data, %seven : tile<ptr<i32>>, tile<i32> -> token
    %set = store_ptr_tko RELEASE %flag, %one TOKEN : tile<ptr<i32>>, tile<i32> -> token
  }
  %consumes = cmpi equal %block, %zero, signed : tile<i32> -> tile<i1>
  if %consumes {
    %begin = make_token : token
    %seen = loop iter_values(%t = %begin) : token -> token {
      %value, %read = load_ptr_tko ACQUIRE %flag token = %t : tile<ptr<i32>> -> tile<i32>, token
      %set = cmpi equal %value, %one, signed : tile<i32> -> tile<i1>
      if %set {
        break %read : token
      }
      continue %read : token
    }
    %got, %after = load_ptr_tko weak %data SEEN : tile<ptr<i32>> -> tile<i32>, token
    %stored = store_ptr_tko weak %out, %got : tile<ptr<i32>>, tile<i32> -> token
  }
}
"""
RIGHT = {"RELEASE": "release device", "TOKEN": "token = %stored", "ACQUIRE": "acquire device", "SEEN": "token = %seen"}

# Each block adds 1 to the other device's flag, and waits for its own.
PEER = """
entry @k(%mine: tile<ptr<i32>>, %theirs: tile<ptr<i32>>, %flag: tile<ptr<i32>>, %peer: tile<ptr<i32>>,
         %out: tile<ptr<i32>>) {
  %zero = constant <i32: 0> : tile<i32>
  %one = constant <i32: 1> : tile<i32>
  %x, %r0 = load_ptr_tko weak %mine : tile<ptr<i32>> -> tile<i32>, token
  %more = addi %x, %one : tile<i32>
  %published = store_ptr_tko weak %mine, %more token = %r0 : tile<ptr<i32>>, tile<i32> -> token
  %old, %sent = atomic_rmw_tko release SCOPE %peer, add, %one token = %published
    : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
  %seen = loop iter_values(%t = %sent) : token -> token {
    %value, %read = load_ptr_tko acquire SCOPE %flag token = %t : tile<ptr<i32>> -> tile<i32>, token
    %waits = cmpi equal %value, %zero, signed : tile<i32> -> tile<i1>
    if %waits {
      continue %read : token
    }
    break %read : token
  }
  %y, %r1 = load_ptr_tko weak %theirs token = %seen : tile<ptr<i32>> -> tile<i32>, token
  %sum = addi %more, %y : tile<i32>
  %done = store_ptr_tko weak %out, %sum : tile<ptr<i32>>, tile<i32> -> token
}
"""


def prepared(source: str, **words: str) -> Prepared:
    for word, meaning in words.items():
        source = source.replace(word, meaning)
    return Prepared(text.parse(f"cuda_tile.module @m {{{source}}}", filename="k.mlir"))


def flag(**words: str) -> Prepared:
    return prepared(FLAG, **{**RIGHT, **words})


def launch(
    kernel: Prepared, grid: Grid = (2, 1, 1), *, ready: int = 0, sanitize: bool = True, resident: int | None = None,
    schedules: tuple[int, ...] | None = None, before: int = 0,
) -> int:  # fmt: skip
    arrays = [np.array([n], np.int32) for n in (before, ready, 0)]
    kernel.launch("k", [Pointer(Allocation(a)) for a in arrays], grid, sanitize, schedules=schedules, resident=resident)
    return int(arrays[2][0])


@pytest.mark.parametrize("schedule", range(6))
@pytest.mark.parametrize("sanitize", [True, False])
def test_a_block_waits_for_a_later_one(schedule: int, sanitize: bool) -> None:
    assert launch(flag(), (5, 1, 1), schedules=(schedule,), sanitize=sanitize) == 7


@pytest.mark.parametrize(
    ("line", "instead", "waits"),
    [
        ("continue %read : token", "continue %read : token", True),
        ("ACQUIRE", "weak", True),
        ("%set = cmpi equal %value, %one", "%set = cmpi equal %block, %zero", False),  # whatever it reads, it ends
    ],
)
def test_only_kernels_that_may_wait_take_turns(line: str, instead: str, waits: bool) -> None:
    assert prepared(FLAG.replace(line, instead), **RIGHT).kernel("k").interleaved == waits


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ({"RELEASE": "relaxed device"}, r"store_ptr_tko at k.mlir:12:\d+ in block \(1, 0, 0\) is no release"),
        ({"TOKEN": ""}, r"store_ptr_tko at k.mlir:12:\d+ .* has no token of store_ptr_tko at k.mlir:11"),
        ({"ACQUIRE": "relaxed device"}, r"load_ptr_tko at k.mlir:18:\d+ in block \(0, 0, 0\) is no acquire"),
        ({"SEEN": ""}, r"load_ptr_tko at k.mlir:25:\d+ .* has no token of load_ptr_tko at k.mlir:18"),
    ],
)
def test_what_is_missing_is_named(words: dict[str, str], why: str) -> None:
    with pytest.raises(SanitizerError, match=why) as caught:
        launch(flag(**words))
    assert re.search(r"load_ptr_tko at k.mlir:25:\d+ in block \(0, 0, 0\) reads byte 0", str(caught.value))
    assert re.search(r"store_ptr_tko at k.mlir:11:\d+ in block \(1, 0, 0\) writes", str(caught.value))


def test_a_weak_load_may_see_an_old_value() -> None:
    with pytest.raises(SanitizerError, match="is no acquire; the load may see 5, from before the launch, and not 7"):
        launch(flag(ACQUIRE="relaxed device"), before=5)


def relaxed(**words: str) -> Prepared:
    """The data is atomic too, so that nothing races."""
    return prepared(FLAG.replace("weak %data", "relaxed device %data"), **{**RIGHT, **words})


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ({"RELEASE": "relaxed device"}, r"store_ptr_tko at k.mlir:12:\d+ in block \(1, 0, 0\) is no release"),
        ({"TOKEN": ""}, r"store_ptr_tko at k.mlir:12:\d+ .* has no token of store_ptr_tko at k.mlir:11"),
        ({"ACQUIRE": "relaxed device"}, r"load_ptr_tko at k.mlir:18:\d+ in block \(0, 0, 0\) is no acquire"),
        ({"SEEN": ""}, r"load_ptr_tko at k.mlir:25:\d+ .* has no token of load_ptr_tko at k.mlir:18"),
    ],
)
def test_an_atomic_load_sees_an_old_value(words: dict[str, str], why: str) -> None:
    assert launch(relaxed(), before=5) == 7
    with pytest.raises(SanitizerError, match=f"{why}.*with old values") as caught:
        launch(relaxed(**words), before=5)
    assert re.search(r"load_ptr_tko at k.mlir:25:\d+ in block \(0, 0, 0\) reads .* may see 5", str(caught.value))
    assert re.search(r"before store_ptr_tko at k.mlir:11:\d+ in block \(1, 0, 0\)", str(caught.value))


def test_an_old_value_that_changes_nothing_is_no_fault() -> None:
    assert launch(relaxed(ACQUIRE="relaxed device"), before=7) == 7


def test_an_old_value_that_makes_a_block_wait_for_ever() -> None:
    """The data is read once, and waited for as it was then."""
    source = FLAG.replace("weak %data", "relaxed device %data").replace(
        "%stored = store_ptr_tko weak %out, %got : tile<ptr<i32>>, tile<i32> -> token",
        """loop {
      %again, %r = load_ptr_tko relaxed device %flag : tile<ptr<i32>> -> tile<i32>, token
      %both = muli %again, %seven : tile<i32>
      %ready = cmpi equal %both, %got, signed : tile<i32> -> tile<i1>
      if %ready {
        break
      }
      continue
    }""",
    )
    launch(prepared(source, **RIGHT))
    with pytest.raises(SanitizerError, match=r"k.mlir:18:\d+ in block \(0, 0, 0\) is no acquire .*with old values"):
        launch(prepared(source, **{**RIGHT, "ACQUIRE": "relaxed device"}))


def test_a_wait_by_weak_loads_is_a_race() -> None:
    with pytest.raises(SanitizerError, match=r"load_ptr_tko at k.mlir:18:\d+ .* waits, but is weak"):
        launch(flag(ACQUIRE="weak"))


def test_a_flag_that_was_not_reset() -> None:
    with pytest.raises(SanitizerError, match=r"k.mlir:18:\d+ .* did not wait, it read 1 .* a reset is missing"):
        launch(flag(), ready=1)


@pytest.mark.parametrize("sanitize", [True, False])
def test_a_deadlock(sanitize: bool) -> None:
    with pytest.raises(SanitizerError, match=r"deadlock.* block \(0, 0, 0\) at load_ptr_tko at k.mlir:18") as caught:
        launch(prepared(FLAG.replace("%flag, %one", "%flag, %seven"), **RIGHT), sanitize=sanitize)
    if sanitize:
        assert re.search(r"holds 7, last written by store_ptr_tko at k.mlir:12:\d+ in block \(1", str(caught.value))


def test_more_blocks_than_are_resident() -> None:
    assert launch(flag(), (4, 1, 1), resident=2) == 7  # the blocks between end, and make room
    with pytest.raises(
        SanitizerError, match=r"more blocks wait .* can be resident: 4 in the grid, 1 at once, block \(1"
    ):
        launch(flag(), (4, 1, 1), resident=1)


def test_a_wait_that_counts_its_turns_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interleaving, "QUIET", 500)
    source = FLAG.replace(
        "iter_values(%t = %begin) : token -> token", "iter_values(%t = %begin, %n = %zero) : token, tile<i32> -> token"
    )
    source = source.replace(
        "continue %read : token", "%m = addi %n, %one : tile<i32>\n continue %read, %m : token, tile<i32>"
    )
    assert launch(prepared(source, **RIGHT)) == 7
    with pytest.raises(SanitizerError, match="after 500 turns in which none changed memory"):
        launch(prepared(source.replace("%flag, %one", "%flag, %seven"), **RIGHT))


@pytest.mark.parametrize("wrong", [(), (-1,)])
def test_schedules_are_seeds(wrong: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="schedules"):
        launch(flag(), schedules=wrong)


def peers(scope: str, *, one_sided: bool = False) -> list[int]:
    kernel = prepared(PEER, SCOPE=scope)
    data, flags, out = (
        [Pointer(Allocation(np.array([n], np.int32))) for n in values] for values in ((10, 20), (0, 0), (0, 0))
    )
    launch_together([
        Launch(kernel, "k", [data[d], data[1 - d], flags[d], flags[d if one_sided else 1 - d], out[d]], (1, 1, 1))
        for d in range(2)
    ])  # fmt: skip
    return [int(pointer.memory.array[0]) for pointer in out]


def test_two_devices_add_up() -> None:
    assert peers("sys") == [32, 32]


def test_the_scope_of_one_device_does_not_reach_the_other() -> None:
    with pytest.raises(SanitizerError, match=r"of device 1.*(scope|scopes)"):
        peers("device")


def test_a_flag_of_the_wrong_device_orders_nothing() -> None:
    with pytest.raises(SanitizerError, match=r"of device [01] has read nothing that block .* of device [01] released"):
        peers("sys", one_sided=True)

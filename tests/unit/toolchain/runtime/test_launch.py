from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolchain.bundles.bundle import Bundle, BundleEntry, FileRef
from toolchain.contract.artifact import Form, ptx
from toolchain.contract.entries import committed
from toolchain.contract.entry import EntrySpec
from toolchain.errors import LaunchError, UsageError
from toolchain.runtime import DeviceBuffer, Launcher
from toolchain.runtime.cpu import SMS, CpuExecutor
from toolchain.runtime.launch import EntryLauncher


def linear(executor: CpuExecutor, m: int = 100, k: int = 48, n: int = 40) -> dict[str, DeviceBuffer]:
    sizes = {"x": (m, k), "weight": (k, n), "bias": (n,), "out": (m, n)}
    return {name: executor.empty(shape, "f32") for name, shape in sizes.items()}


def layernorm(executor: CpuExecutor, n: int = 3) -> dict[str, Any]:
    x, out = executor.empty((n, 48), "f32"), executor.empty((n, 48), "f32")
    return {
        "x": x,
        "weight": executor.empty((48,), "f32"),
        "bias": executor.empty((48,), "f32"),
        "out": out,
        "eps": 1e-5,
    }


@pytest.fixture
def launcher(entries: Any, recorder: Any) -> Launcher:
    return Launcher(entries, "py", recorder)


def refused(launcher: Launcher, op: str, args: dict[str, Any], match: str, dtype: str = "f32") -> None:
    recorder: Any = launcher.executor
    before = len(recorder.launched)
    with pytest.raises(LaunchError, match=match) as caught:
        launcher(op, dtype, **args)
    assert op in str(caught.value)
    assert len(recorder.launched) == before  # nothing reached the device


def test_a_launch_reaches_the_device_with_its_grid_and_addresses(
    launcher: Launcher, recorder: Any, entries: Any
) -> None:
    args = linear(recorder)
    launcher("linear", "f32", **args)
    assert recorder.launched == [("linear_fast_f32", (2, 2, 1), [b.pointer for b in args.values()], [])]
    assert entries.asked == [("py", "linear", "f32", {"M": 100, "K": 48, "N": 40}, frozenset())]
    norm = layernorm(recorder, n=9)
    launcher("layernorm", "f32", **norm)
    assert recorder.launched[1][1:] == ((SMS, 1, 1), [norm[p].pointer for p in ("x", "weight", "bias", "out")], [1e-5])


def test_keywords_come_in_any_order(launcher: Launcher, recorder: Any) -> None:
    args = linear(recorder)
    launcher("linear", "f32", **dict(reversed(args.items())))
    assert recorder.launched[0][2] == [b.pointer for b in args.values()]


def test_the_same_layouts_are_prepared_once(launcher: Launcher, recorder: Any) -> None:
    first, second = linear(recorder), linear(recorder)
    for args in (first, second, first):
        launcher("linear", "f32", **args)
    assert recorder.prepared == ["linear_fast_f32"]
    assert [call[2][0] for call in recorder.launched] == [a["x"].pointer for a in (first, second, first)]
    launcher("linear", "f32", **linear(recorder, m=101))
    assert len(recorder.prepared) == 2


def test_what_is_prepared_is_launched_later(launcher: Launcher, recorder: Any) -> None:
    args = linear(recorder)
    launcher.prepare("linear", "f32", **args)
    assert (recorder.prepared, recorder.launched) == (["linear_fast_f32"], [])
    launcher("linear", "f32", **args)
    assert (recorder.prepared, len(recorder.launched)) == (["linear_fast_f32"], 1)
    with pytest.raises(LaunchError, match="missing argument out"):
        launcher.prepare("linear", "f32", **{name: args[name] for name in ("x", "weight", "bias")})


def test_an_empty_output_is_no_launch(launcher: Launcher, recorder: Any) -> None:
    launcher("linear", "f32", **linear(recorder, m=0))
    assert recorder.prepared == recorder.launched == []


def test_misaligned_arguments_get_the_entry_without_alignment(launcher: Launcher, recorder: Any, entries: Any) -> None:
    args = linear(recorder)
    args["x"] = recorder.empty((100, 49), "f32").slice(1, 0, 48)  # row stride 196 bytes
    launcher("linear", "f32", **args)
    args["x"] = recorder.empty((100 * 48 + 1,), "f32").slice(0, 1, 4801).reshape(100, 48)  # base off by 4 bytes
    launcher("linear", "f32", **args)
    assert [call[0] for call in recorder.launched] == ["linear_f32", "linear_f32"]
    assert [asked[4] for asked in entries.asked] == [frozenset({"x"})] * 2


def test_alignment_is_looked_at_in_each_launch(launcher: Launcher, recorder: Any) -> None:
    args = linear(recorder)
    launcher("linear", "f32", **args)
    wide = recorder.empty((100 * 48 + 4,), "f32")
    for start, symbol in ((4, "linear_fast_f32"), (1, "linear_f32"), (0, "linear_fast_f32")):
        launcher("linear", "f32", **args | {"x": wide.slice(0, start, start + 4800).reshape(100, 48)})
        assert recorder.launched[-1][0] == symbol


def test_tf32_takes_f32_arrays(launcher: Launcher, recorder: Any) -> None:
    launcher("linear", "tf32", **linear(recorder))
    assert recorder.launched[0][0] == "linear_tf32"


def test_argument_names(launcher: Launcher, recorder: Any) -> None:
    args = linear(recorder)
    refused(launcher, "linear", {k: v for k, v in args.items() if k != "bias"}, "missing argument bias")
    refused(launcher, "linear", args | {"eps": 1.0}, "unknown argument eps")
    with pytest.raises(UsageError, match="no op 'linaer'"):
        launcher("linaer", "f32", **args)
    with pytest.raises(UsageError, match="f64"):
        launcher("linear", "f64", **args)


def test_kinds_dtypes_ranks_and_shapes(launcher: Launcher, recorder: Any) -> None:
    args = linear(recorder)
    refused(launcher, "linear", args | {"bias": 1.0}, "bias must be an array of f32, is a float")
    refused(
        launcher, "linear", args | {"x": np.zeros((100, 48), np.float32)}, "x must be an array of f32, is a ndarray"
    )
    refused(launcher, "layernorm", layernorm(recorder) | {"eps": args["bias"]}, "eps must be a scalar of f32")
    refused(launcher, "linear", args | {"x": recorder.empty((100, 48), "f16")}, "x is f16, but must be f32")
    refused(launcher, "linear", args | {"bias": recorder.empty((1, 40), "f32")}, "bias has rank 2, wants 1")
    refused(launcher, "linear", args | {"weight": recorder.empty((47, 40), "f32")}, "K is 48 in x but 47 in weight")
    tokens, wte = recorder.empty((3,), "f32"), recorder.empty((5, 8), "f32")
    embedding = {"tokens": tokens, "positions": recorder.empty((3,), "i32"), "wte": wte, "wpe": wte, "out": wte}
    refused(launcher, "embedding", embedding, "tokens is f32, but must be i32")


def test_strides(launcher: Launcher, recorder: Any) -> None:
    args = linear(recorder)
    column = DeviceBuffer(recorder, recorder.allocate(4 * 100 * 100), 0, "f32", (100, 48), (1, 100))
    refused(launcher, "linear", args | {"x": column}, r"x has strides \[1, 100\]: the last must be 1")
    twice = DeviceBuffer(recorder, args["out"].allocation, 0, "f32", (100, 40), (0, 1))
    refused(launcher, "linear", args | {"out": twice}, "elements of an output must not share memory")
    launcher(
        "linear", "f32", **args | {"x": DeviceBuffer(recorder, recorder.allocate(192), 0, "f32", (100, 48), (0, 1))}
    )


def test_sizes_beyond_int32(launcher: Launcher, recorder: Any) -> None:
    args = linear(recorder, m=1)
    far = DeviceBuffer(recorder, recorder.allocate(192), 0, "f32", (1, 48), (2**31, 1))
    refused(launcher, "linear", args | {"x": far}, r"below 2\*\*31")


@pytest.mark.parametrize("eps", [math.nan, math.inf, 1e39, True, "1", None])
def test_scalars(launcher: Launcher, recorder: Any, eps: Any) -> None:
    launcher("layernorm", "f32", **layernorm(recorder) | {"eps": np.float32(1e-5)})
    launcher("layernorm", "f32", **layernorm(recorder) | {"eps": 1})
    refused(launcher, "layernorm", layernorm(recorder) | {"eps": eps}, "eps")


def test_a_remembered_launch_still_checks_values(launcher: Launcher, recorder: Any) -> None:
    args = layernorm(recorder)
    launcher("layernorm", "f32", **args)
    refused(launcher, "layernorm", args | {"eps": math.nan}, "eps is nan")
    refused(launcher, "layernorm", args | {"out": args["x"]}, "out overlaps x")
    refused(
        launcher, "layernorm", args | {"x": CpuExecutor().empty((3, 48), "f32")}, "x is on cpu interpreter.*another"
    )
    args["bias"].free()
    refused(launcher, "layernorm", args, "bias was freed")


def test_freed_and_foreign_buffers(launcher: Launcher, recorder: Any) -> None:
    args = linear(recorder)
    refused(launcher, "linear", args | {"x": CpuExecutor().empty((100, 48), "f32")}, "x is on cpu interpreter")
    args["weight"].select(0, 1).free()
    refused(launcher, "linear", args, "weight was freed")


def test_outputs_overlap_nothing(launcher: Launcher, recorder: Any) -> None:
    args = linear(recorder, k=40)
    refused(launcher, "linear", args | {"out": args["x"]}, "out overlaps x")
    both = recorder.empty((101, 40), "f32")
    shifted = {"x": both.slice(0, 0, 100), "out": both.slice(0, 1, 101)}
    refused(launcher, "linear", args | shifted, "out overlaps x")
    wide = recorder.empty((100, 80), "f32")  # interleaved rows, no element in common
    launcher("linear", "f32", **args | {"x": wide.slice(1, 0, 40), "out": wide.slice(1, 40, 80)})
    refused(launcher, "linear", args | {"x": wide.slice(1, 0, 40), "out": wide.slice(1, 39, 79)}, "out overlaps x")
    cache = recorder.empty((1, 8, 2, 32), "f32")
    new = recorder.empty((1, 1, 2, 32), "f32")
    append = {"k": new, "v": new, "positions": recorder.empty((1,), "i32"), "k_cache": cache, "v_cache": cache}
    refused(launcher, "kv_append", append, "k_cache overlaps v_cache")


def test_linear_residual_may_add_in_place(launcher: Launcher, recorder: Any) -> None:
    args = linear(recorder) | {"residual": recorder.empty((100, 40), "f32")}
    launcher("linear_residual", "f32", **args)
    launcher("linear_residual", "f32", **args | {"out": args["residual"]})
    launcher("linear_residual", "f32", **args | {"out": args["residual"].reshape(100, 40)})
    assert len(recorder.launched) == 3
    both = recorder.empty((101, 40), "f32")
    shifted = {"residual": both.slice(0, 0, 100), "out": both.slice(0, 1, 101)}
    refused(launcher, "linear_residual", args | shifted, "out overlaps residual")
    refused(
        launcher,
        "linear_residual",
        linear(recorder, k=40) | {"residual": args["residual"], "x": args["residual"], "out": args["residual"]},
        "out overlaps x",
    )


def test_launching_exactly_one_entry(entries: Any, recorder: Any) -> None:
    args = linear(recorder)
    fast = entries.entry("linear_fast_f32")
    launch = EntryLauncher(recorder)
    launch(entries, fast, args)
    launch(entries, entries.entry("linear_f32"), args)
    launch(entries, fast, args)
    assert [call[0] for call in recorder.launched] == ["linear_fast_f32", "linear_f32", "linear_fast_f32"]
    assert recorder.prepared == ["linear_fast_f32", "linear_f32"]
    args["x"] = recorder.empty((100, 49), "f32").slice(1, 0, 48)
    with pytest.raises(LaunchError, match="linear_fast_f32: x must be aligned"):
        launch(entries, fast, args)
    assert len(recorder.launched) == 3


def test_a_launcher_may_choose_for_another_target(entries: Any, recorder: Any) -> None:
    """The interpreter, which runs every entry, as a GPU would choose."""
    own = entries.entry("linear_f32").spec
    entries.specs[:0] = [replace(own, symbol="linear_tuned_f32", targets=("sm_90",))]
    found = []
    for target in (None, "sm_90", "sm_80"):
        Launcher(entries, "py", recorder, target)("linear", "f32", **linear(recorder))
        found.append(recorder.launched[-1][0])
    assert found == ["linear_tuned_f32", "linear_tuned_f32", "linear_fast_f32"]


def test_ops_that_a_source_lacks_are_borrowed(entries: Any, recorder: Any) -> None:
    norm = next(spec for spec in entries.specs if spec.op == "layernorm")
    entries.specs.append(replace(norm, symbol="layernorm_own_f32", source="own"))
    entries.specs.append(replace(norm, symbol="layernorm_elsewhere_f16", source="own", dtype="f16", targets=("sm_90",)))
    launcher = Launcher(entries, "own", recorder, "sm_80", borrows_from="py")
    launcher("layernorm", "f32", **layernorm(recorder))
    assert (launcher.borrowed_ops, launcher.borrowed) == ("", set())
    launcher("linear", "f32", **linear(recorder))
    launcher("linear", "f32", **linear(recorder))
    assert [launch[0] for launch in recorder.launched] == ["layernorm_own_f32", "linear_fast_f32", "linear_fast_f32"]
    assert launcher.borrowed_ops == "borrowed from py: linear"
    assert launcher.source_of("layernorm", "f16") == "py", "an entry for another target does not count"
    assert Launcher(entries, "own", recorder).source_of("linear", "f32") == "own", "nothing is borrowed unless asked"


def test_where_no_entry_of_a_source_fits_another_is_borrowed(entries: Any, recorder: Any) -> None:
    fast = next(spec for spec in entries.specs if spec.op == "linear")
    entries.specs.append(replace(fast, symbol="linear_own_f32", source="own", where=("M > 100",)))
    launcher = Launcher(entries, "own", recorder, borrows_from="py")
    launcher("linear", "f32", **linear(recorder, m=101))
    assert launcher.borrowed == set()
    launcher("linear", "f32", **linear(recorder))
    assert [launch[0] for launch in recorder.launched] == ["linear_own_f32", "linear_fast_f32"]
    assert launcher.borrowed == {"linear"}
    with pytest.raises(LaunchError, match="no entry fits"):
        Launcher(entries, "own", recorder)("linear", "f32", **linear(recorder))


def test_a_virtual_source_takes_the_fastest_sources_entry(entries: Any, recorder: Any) -> None:
    """What was measured decides; where nothing was, the first source that the bundle has."""
    fast, norm = (next(spec for spec in entries.specs if spec.op == op) for op in ("linear", "layernorm"))
    entries.specs.append(replace(fast, symbol="linear_cute_f32", source="cute"))
    entries.picks = {("linear", 100): "cute", ("layernorm", 9): "cute"}
    launcher = Launcher(entries, "fastest", recorder)
    assert launcher.borrowed_ops == ""
    launcher("linear", "f32", **linear(recorder, m=101))
    assert launcher.borrowed_ops == "all: py"
    launcher("linear", "f32", **linear(recorder))
    launcher("layernorm", "f32", **layernorm(recorder))
    assert [launch[0] for launch in recorder.launched] == ["linear_fast_f32", "linear_cute_f32", norm.symbol]
    assert launcher.borrowed_ops == "cute: linear; all others: py"
    with pytest.raises(LaunchError, match="no entry fits"):  # cute has no such entry, and no other takes its place
        launcher("layernorm", "f32", **layernorm(recorder, n=9))


def test_the_kernels_reach_is_checked_for_every_array(
    launcher: Launcher, recorder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Any, ...]] = []

    def check(_: Form, *asks: Any) -> None:
        asked.append(asks)
        if asks[1] == "bias":
            raise LaunchError("linear: out of reach")

    monkeypatch.setattr(Form, "check_reach", check)
    refused(launcher, "linear", linear(recorder), "out of reach")
    assert asked == [
        ("linear_fast_f32", "x", (100, 48), (48, 1)),
        ("linear_fast_f32", "weight", (48, 40), (40, 1)),
        ("linear_fast_f32", "bias", (40,), (1,)),
    ]


def test_it_knows_what_it_has_before_there_are_arrays(recorder: CpuExecutor) -> None:
    spec = EntrySpec("gelu_f32", "gelu", "cute", "f32", multiples={"N": 8}, targets=("sm_90",))
    nothing = FileRef(Path(), "")
    bundle = Bundle(Path(), (BundleEntry(spec, nothing, ptx("", block=(32, 1, 1)).form, {}),), {})
    for source in ("cute", "fastest"):  # the only one that has the op is the fastest
        launcher = Launcher(bundle, source, recorder, "sm_90")
        assert launcher.has("gelu", "f32", {"M": 4, "N": 8})
        assert not launcher.has("gelu", "f32", {"M": 4, "N": 9})
        assert not launcher.has("gelu", "bf16", {"M": 4, "N": 8})
        assert not launcher.has("softmax", "f32", {"M": 4, "N": 8})
    assert not Launcher(bundle, "mlir", recorder, "sm_90").has("gelu", "f32", {"M": 4, "N": 8})
    assert not Launcher(bundle, "cute", recorder, "sm_80").has("gelu", "f32", {"M": 4, "N": 8})


@pytest.mark.parametrize(("sources", "columns"), [(("mlir", "py", "cute"), 64), (("mlir", "py"), 128)])
def test_the_policy_is_that_of_a_source_if_its_kernels_are_there(
    recorder: CpuExecutor, sources: tuple[str, ...], columns: int
) -> None:
    policy = committed().policies["sm_90"]
    tiles = {**policy.tiles, "squares": ((128, 128, 1),), "squares_fastest": ((128, 64, 1),)}
    nothing, form = FileRef(Path(), ""), ptx("", block=(32, 1, 1)).form
    entries = tuple(BundleEntry(EntrySpec("gelu_f32", "gelu", each, "f32"), nothing, form, {}) for each in sources)
    bundle = Bundle(Path(), entries, {}, {"sm_90": replace(policy, tiles=tiles)})
    assert Launcher(bundle, "fastest", recorder, "sm_90").policy.tiles["squares"] == ((128, columns, 1),)
    assert Launcher(bundle, "mlir", recorder, "sm_90").policy.tiles["squares"] == ((128, 128, 1),)

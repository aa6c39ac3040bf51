"""Search spaces: reading a file, and the errors for a wrong one."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.cases.cases import LLAMA, ForwardCase
from gpt.config import LLAMAS, PRESETS, GPTConfig
from gpt.launches import DryExecutor, launched
from gpt.model import GPT, KVCache
from gpt.parameters.weights import Weights, quantized, random_weights
from toolchain.contract.sources import load_source, packages
from toolchain.errors import UsageError
from toolchain.knobs import ROOT
from toolchain.runtime import Launcher
from toolchain.runtime.launch import check_layouts
from tune.spaces import Spaces, load_spaces, only_classes, only_shapes, parse_shape, shape_name
from tune.variants import variants

from .conftest import WriteSpaces

ANOTHER = """
[[space]]
name = "wide"
op = "gelu"
like = "gelu"
constants = { BN = [512] }
keep = []
"""


def test_a_class_has_its_shapes_put_together_with_each_of_the_spaces(write_spaces: WriteSpaces) -> None:
    path = write_spaces("shapes = [{ N = 256 }]", "shapes = [{ N = 256 }, { N = 512 }]")
    (space,) = load_spaces(path).spaces
    few, many = space.classes
    assert [shape_name(dims) for dims in few.shapes] == ["M=1 N=256", "M=1 N=512", "M=16 N=256", "M=16 N=512"]
    assert (few.where, many.keep, len(many.shapes)) == (("M <= 16",), ("BN > 64",), 2)


def test_a_space_that_is_like_another_says_what_differs(write_spaces: WriteSpaces) -> None:
    path = write_spaces()
    path.write_text(path.read_text() + ANOTHER)
    first, second = load_spaces(path).spaces
    assert (second.name, second.constants, second.keep) == ("wide", {"BN": (512,)}, ())
    assert (second.grid, second.hints, second.classes) == (first.grid, first.hints, first.classes)


def test_a_space_may_be_like_one_that_is_like_another(write_spaces: WriteSpaces) -> None:
    path = write_spaces()
    third = ANOTHER.replace('"wide"', '"third"').replace('like = "gelu"', 'like = "wide"').replace("512", "1024")
    path.write_text(path.read_text() + ANOTHER + third)
    first, _, last = load_spaces(path).spaces
    assert (last.constants, last.grid, last.classes) == ({"BN": (1024,)}, first.grid, first.classes)
    path.write_text(path.read_text().replace('op = "gelu"', 'op = "gelu"\nlike = "third"', 1))
    with pytest.raises(UsageError, match="there is no other space"):
        load_spaces(path)


def test_what_is_assumed_where_nothing_is_said(write_spaces: WriteSpaces) -> None:
    (space,) = load_spaces(write_spaces()).spaces
    assert space.tensor_cores and all(made.cold for made in space.classes)
    (space,) = load_spaces(write_spaces('keep = ["BN > 64"]', "cold = false")).spaces
    assert [made.cold for made in space.classes] == [True, False]
    (space,) = load_spaces(write_spaces('op = "gelu"', 'op = "gelu"\ntensor_cores = false')).spaces
    assert not space.tensor_cores


def test_spaces_of_an_op_or_of_the_model(spaces: Spaces) -> None:
    assert [s.name for s in spaces.of("gelu")] == [s.name for s in spaces.of("model")] == ["gelu"]
    with pytest.raises(UsageError, match="no search space for linear\n  next: one of gelu, model"):
        spaces.of("linear")
    assert [spaces.position("gelu", name) for name in ("few", "many", "gone")] == [0, 1, 2]


def test_trial_spaces_come_after_the_others(spaces: Spaces, write_spaces: WriteSpaces) -> None:
    both = spaces.joined(load_spaces(write_spaces("[classes.rows.few]", "[classes.rows.fewer]")))
    assert [both.position("gelu", name) for name in ("few", "many", "fewer", "gone")] == [0, 1, 2, 4]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[[space]]", "[[space", r"spaces\.toml:12:8: not valid TOML: "),
        ('model = ["gelu"]', "", r"spaces\.toml: it has no model"),
        ('model = ["gelu"]', 'model = ["softmax"]', r"model names softmax, for which there is no space"),
        ('op = "gelu"', 'op = "nope"', r"space 1 \(gelu\): there is no op nope\n  next: one of embedding"),
        ('op = "gelu"', "", r"space 1: it has no op"),
        ('op = "gelu"', 'op = "gelu"\nlike = "gone"', r"space 1: there is no other space gone"),
        ('op = "gelu"', 'op = "gelu"\nlike = "gelu"', r"space 1: there is no other space gelu"),
        ('op = "gelu"', 'op = "gelu"\nlike = 3', r"space 1: like is 3, not a text"),
        ("multiples = { N = 64 }", "multiples = { N = 0 }", r"space 1 \(gelu\): multiples has N = 0: it must be at"),
        ('where = ["M > 16"]', 'where = ["M % 0 == 0"]', r"class many: 'M % 0 == 0' divides by zero where M=64"),
        ("BN = [64, 128, 256]", "BN = 64", r"space 1: constants is .*, not a table of lists of integers"),
        ("occupancy = [1, 2]", "speed = [1]", r"there is no hint speed\n  next: one of num_worker_warps"),
        ('dtypes = ["bf16"]', 'dtypes = ["f8"]', r"there is no dtype f8"),
        ('"M", "1"]', '"1"]', r"grid has 2 expressions, not three"),
        ('classes = "rows"', 'classes = "columns"', r"there is no shared classes columns"),
        ('classes = "rows"', 'classes = "rows"\nspeed = 1', r"space 1: unknown speed"),
        ('keep = ["BN > 64"]', "cold = 1", r"class many: cold is 1, not true or false"),
        ("{ M = 16 }", "{ M = 17 }", r"class few: its own shape M=17 N=256 does not meet its conditions"),
        ("{ M = 16 }", "{ K = 16 }", r"class few: gelu has dimensions M, N, not N, K"),
        ("aligned = ", 'sizes = ["Q"]\naligned = ', r"class few: there is no dimension Q"),
        (
            "aligned = ",
            'sizes = ["M"]\naligned = ',
            r"class few: M is compiled in, so that all its shapes must have the",
        ),
        ('where = ["M > 16"]', 'where = ["Q > 16"]', r"class many: there is no dimension Q"),
        ('keep = ["BN > 64"]', 'keep = ["BM > 64"]', r"class many: there is no constant or hint BM"),
        ('keep = ["BN * occ', 'keep = ["warps * occ', r"there is no constant or hint warps"),
        ("shapes = [{ M = 1 }, { M = 16 }]", "shapes = []", r"class few: shapes is \[\], not a list of tables of"),
    ],
)
def test_a_file_that_is_wrong_says_where(write_spaces: WriteSpaces, old: str, new: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        load_spaces(write_spaces(old, new))


def test_two_spaces_of_one_op_must_agree_on_what_a_class_is(write_spaces: WriteSpaces) -> None:
    path = write_spaces()
    path.write_text(path.read_text() + ANOTHER + "shapes = [{ N = 512 }]\n")
    with pytest.raises(UsageError, match="class few of wide has other sizes than that of gelu"):
        load_spaces(path)
    path.write_text(path.read_text().replace('"wide"', '"gelu"').replace('like = "gelu"\n', ""))
    with pytest.raises(UsageError):
        load_spaces(path)


def test_classes_are_chosen_by_name(spaces: Spaces) -> None:
    (space,) = only_classes(spaces.spaces, re.compile("^m"))
    assert [made.name for made in space.classes] == ["many"]
    assert only_classes(spaces.spaces, re.compile("x")) == []


def test_other_shapes_go_to_the_classes_that_take_them(spaces: Spaces) -> None:
    (space,) = only_shapes(spaces.spaces, [{"M": 100, "N": 64}, {"M": 2, "N": 64}, {"M": 3, "N": 64}])
    assert [(c.name, [dims["M"] for dims in c.shapes]) for c in space.classes] == [("few", [2, 3]), ("many", [100])]
    (space,) = only_shapes(spaces.spaces, [{"M": 100, "N": 64}])
    assert [made.name for made in space.classes] == ["many"]
    with pytest.raises(UsageError, match="no class takes K=1 M=3\n  next: dimensions of gelu: M N"):
        only_shapes(spaces.spaces, [{"K": 1, "M": 3}])


def test_a_shape_in_words() -> None:
    assert parse_shape("M=8  K=768") == {"M": 8, "K": 768}
    assert shape_name({"M": 8, "K": 768}) == "M=8 K=768"
    for wrong in ("", "M", "M=", "M=x", "M=-1", "8=M"):
        with pytest.raises(UsageError, match="is no shape"):
            parse_shape(wrong)


def test_the_committed_spaces_are_right() -> None:
    spaces = load_spaces()
    assert {"linear", "linear_gelu", "linear_residual", "logits", "attention"} <= {s.op for s in spaces.of("model")}


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        load_spaces(tmp_path / "none.toml")


def test_the_space_that_is_explained_is_one(tmp_path: Path) -> None:
    text = (ROOT / "docs/tuning.md").read_text()
    (block,) = (part for part in re.findall(r"```toml\n(.*?)```", text, re.DOTALL) if part.startswith("[[space]]"))
    (tmp_path / "spaces.toml").write_text(f"model = []\n{block}")
    (space,) = load_spaces(tmp_path / "spaces.toml").spaces
    symbols = [variant.spec.symbol for variant in variants(space, "py", "sm_90") if variant.spec.dtype == "bf16"]
    assert "gelu_1x512_4x2_N3072_bf16" in symbols and "gelu_1x512_8x2_N3072_bf16" not in symbols


MODELS = """
[models]
tiny = ["wide"]
"""


def test_a_model_has_the_spaces_that_its_list_names(write_spaces: WriteSpaces) -> None:
    path = write_spaces()
    path.write_text(path.read_text() + ANOTHER + MODELS)
    spaces = load_spaces(path)
    assert [s.name for s in spaces.of("tiny")] == ["wide"]
    assert [s.name for s in spaces.of("gelu")] == ["gelu", "wide"]
    assert [s.name for s in spaces.of("model")] == [s.name for s in spaces.shared] == ["gelu"]
    with pytest.raises(UsageError, match="no search space for huge\n  next: one of gelu, model, tiny"):
        spaces.of("huge")
    trial = load_spaces(write_spaces())
    assert trial.joined(spaces).models == {"tiny": ("wide",)}


@pytest.mark.parametrize(
    ("models", "said"),
    [
        ('tiny = ["wider"]', r"models: tiny: there is no space wider\n  next: one of gelu"),
        ("tiny = []", r"models is .*, not a table of lists of names"),
        ('tiny = "gelu"', r"models is .*, not a table of lists of names"),
        ('softmax = ["gelu"]', r"models has softmax, which `tilestack tune` takes as another word"),
        ('fastest = ["gelu"]', r"models has fastest, which"),
        ('model = ["gelu"]', r"models has model, which"),
    ],
)
def test_a_list_that_is_wrong_says_so(write_spaces: WriteSpaces, models: str, said: str) -> None:
    path = write_spaces()
    path.write_text(f"{path.read_text()}\n[models]\n{models}\n")
    with pytest.raises(UsageError, match=said):
        load_spaces(path)


Launch = tuple[str, dict[str, int]]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[Launch]:
    """The launches of dry runs: the op and its sizes."""
    found: list[Launch] = []

    def watched(where: str, op: str, dtype: str, args: Any) -> Any:
        layouts = check_layouts(where, op, dtype, args)
        found.append((op, layouts[0]))
        return layouts

    monkeypatch.setattr("toolchain.runtime.launch.check_layouts", watched)
    return found


def dry_run(config: GPTConfig, weights: Weights, use: Callable[[Any], object], cache: str = "") -> None:
    def model(config: GPTConfig, weights: Weights, launcher: Launcher, dtype: str) -> GPT:
        return GPT(config, weights, launcher, dtype, cache=cache)

    specs = [spec for spec in load_source(packages()["py"]).entries() if spec.runs_on("sm_90")]
    launched(specs, config, weights, "bf16", DryExecutor("sm_90", 132), use, model)


def test_what_smollm2_launches_is_searched(seen: list[Launch]) -> None:
    """In the passes of the benchmark, each launch of an op that has spaces for it lies in one of their classes."""
    config = replace(LLAMAS["smollm2"], n_layer=2)

    def use(model: Any) -> None:
        for case in LLAMA:
            if isinstance(case, ForwardCase):
                model.forward(np.zeros((case.batch, case.length), np.int32))
            else:
                model.decode(np.zeros(case.batch, np.int32), KVCache(model, case.batch, case.positions))

    dry_run(config, random_weights(config, 0), use)
    spaces = load_spaces()
    theirs = [space for space in spaces.of("llama") if "bf16" in space.dtypes]
    others = [space for space in spaces.shared if space.op == "merge_attention"]  # the few spans of a GPT-2's cache
    searched = {space.op for space in theirs}
    assert {op for op, _ in seen} - searched == {"token_embedding"}
    for op, dims in seen:
        classes = {
            made.name for space in (*theirs, *others) if space.op == op for made in space.classes if made.holds(dims)
        }
        assert op not in searched or len(classes) == 1, f"{op} {shape_name(dims)}: {classes}"


@pytest.mark.parametrize("rows", [1, 8, 64])
def test_what_a_rank_of_xl_launches_is_searched(rows: int) -> None:
    """Few rows of the products of a rank of two, of 12 and of 13 heads: the first space that holds them is of ranks."""
    found = load_spaces()
    for op, k, n, expected in (
        ("linear", 1600, 2304, "linear_half"), ("linear", 1600, 2496, "linear_half"),
        ("linear_gelu", 1600, 3200, "linear_gelu_half"), ("linear", 832, 1600, "linear_narrow_short"),
        ("linear", 3200, 1600, "linear_narrow"),
    ):  # fmt: skip
        dims = {"M": rows, "K": k, "N": n}
        holding = [space.name for space in found.of(op) if any(each.holds(dims) for each in space.classes)]
        assert holding[0] == expected, (op, dims)
        assert expected in {space.name for space in found.of("ranks")}


SMALLER = {"gpt2": replace(PRESETS["gpt2"], n_layer=1, vocab_size=64),
           "smollm2": replace(LLAMAS["smollm2"], n_layer=1, vocab_size=64)}  # fmt: skip


@pytest.mark.parametrize(
    ("model", "kind", "ops"),
    [
        ("gpt2", "f8", {"linear_f8", "linear_gelu_f8_to_f8", "linear_residual_f8"}),
        ("gpt2", "i8", {"linear_i8", "linear_gelu_i8", "linear_residual_i8"}),
        ("gpt2", "f8-weights", {"linear_weight_f8", "linear_gelu_weight_f8", "linear_residual_weight_f8"}),
        ("gpt2", "i8-weights", {"linear_weight_i8", "linear_gelu_weight_i8", "linear_residual_weight_i8"}),
        ("smollm2", "f8-weights", {"linear_weight_f8", "linear_residual_weight_f8", "swiglu_weight_f8"}),
        ("smollm2", "i8-weights", {"linear_weight_i8", "linear_residual_weight_i8", "swiglu_weight_i8"}),
    ],
)
def test_what_a_model_in_8_bits_launches_is_searched(seen: list[Launch], model: str, kind: str, ops: set[str]) -> None:
    """At the rows that are searched, each launch lies in one class, so that no tuned row hides another."""
    alone = kind.endswith("weights")

    def use(made: Any) -> None:
        for batch in (1, 8, 64) if alone else ():
            made.decode(np.zeros(batch, np.int32), KVCache(made, batch, 1024))
        for size in () if alone else ((1, 1024), (2, 1024), (8, 1024), (32, 1024)):
            made.forward(np.zeros(size, np.int32))

    config, weights = quantized(SMALLER[model], random_weights(SMALLER[model], 0), kind)
    dry_run(config, weights, use, "f8" if alone else "")
    appends = {"kv_append_f8"} if model == "gpt2" else set[str]()
    expected = ops | appends | {"grouped_decode_attention_f8"} if alone else ops
    theirs = [space for space in load_spaces().of("eighths") if space.op in expected]
    assert expected <= {op for op, _ in seen} and expected == {space.op for space in theirs}
    for op, dims in seen:
        found = {made.name for space in theirs if space.op == op for made in space.classes if made.holds(dims)}
        assert op not in expected or len(found) == 1, f"{op} {shape_name(dims)}: {found}"


def test_weights_in_integers_have_the_variants_of_those_in_floats() -> None:
    """A row of one is not for the other, but what is tried is the same."""

    def tried(kind: str) -> list[str]:
        spaces = [space for space in load_spaces().of("eighths") if f"weight_{kind}" in space.op]
        return [v.spec.symbol for space in spaces for v in variants(space, "mlir", "sm_90")]

    assert tried("f8") == [symbol.replace("_i8", "_f8") for symbol in tried("i8")] != []


def test_the_classes_of_smollm2_come_before_those_that_hold_them() -> None:
    """Of two tuned rows that take a launch the first one does."""
    spaces = load_spaces()
    theirs = spaces.of("llama")
    for op in {space.op for space in theirs}:
        own = {made.name for space in theirs if space.op == op for made in space.classes}
        rest = spaces.classes_of(op) - own
        if op != "merge_attention":  # whose classes do not overlap
            assert max(spaces.position(op, name) for name in own) < min(
                (spaces.position(op, name) for name in rest), default=10**6
            )

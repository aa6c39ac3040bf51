"""A kernel read with its parts: names do not leak, types must fit, errors name their place."""

from __future__ import annotations

import re

import pytest

from toolchain.errors import SourceError
from toolchain.tileir.compose import Library, compose
from toolchain.tileir.dialect.control import ModuleOp
from toolchain.tileir.dialect.ops import AddFOp
from toolchain.tileir.dialect.types import TileType
from toolchain.tileir.passes.inline import inline
from toolchain.tileir.text import cursor

TEXT = """!line = !cuda_tile.tile<BNxT>
!rest = !cuda_tile.tile<BRxT>

fragment @double(%a: !line) -> !line {
  %b = addf %a, %a : !line
  yield %b : !line
}

skeleton @s {
  %inside = constant <T: 1.0> : !line
  hole @setup
  %y = hole @body(%inside) -> !line
  return
}

kernel @k op = gelu, skeleton = @s {
  @setup { %rest = constant <T: 2.0> : !rest }
  @body(%v) {
    %doubled = call @double(%v)
    %rest_doubled = call @double<BN = BR>(%rest)
    yield %doubled : !line
  }
}
"""


def composed(old: str = "", new: str = "") -> ModuleOp:
    assert old in TEXT
    library = Library({"k.mlir": TEXT.replace(old, new, 1) if old else TEXT})
    return compose(library, "k", symbol="gelu_f16", dtype="f16", constants={"BN": 8, "BR": 4})


def test_a_fragment_is_made_for_the_sizes_that_it_is_called_with() -> None:
    module = composed()
    inline(module)
    assert list(module.entries) == ["gelu_f16"]
    kinds = [op.results[0].type for op in module.walk() if isinstance(op, AddFOp)]
    assert [kind.shape for kind in kinds if isinstance(kind, TileType)] == [(8,), (4,)]


def test_a_file_is_split_into_tokens_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library does it. Splitting it again for each part took half the time of an export."""
    library = Library({"k.mlir": TEXT})
    monkeypatch.setattr(cursor, "tokenize", lambda _: pytest.fail("a file was split into tokens again"))
    compose(library, "k", symbol="gelu_f16", dtype="f16", constants={"BN": 8, "BR": 4})


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("addf %a, %a", "addf %a, %v", "k.mlir:5:17: error: %v is not defined here"),
        ("call @double(%v)", "call @double(%inside)", "k.mlir:19:29: error: %inside is not defined here"),
        ("call @double(%v)", "call @double(%v, %v)", "@double takes 1 values, not 2"),
        ("call @double(%v)", "call @double(%rest)", "%a of @double is tile<8xf16>, %rest is tile<4xf16>"),
        ("call @double(%v)", "call @triple(%v)", "there is no fragment @triple"),
        ("call @double<BN = BR>(%rest)", "call @double<BN = BQ>(%rest)", "the entry has no constant BQ"),
        ("yield %doubled : !line", "yield %rest : !rest", "@body has to end with a yield of tile<8xf16>"),
        ("@body(%v) {", "@body(%v, %w) {", "hole @body passes 1 values, but the section takes 2"),
        ("@body(%v) {", "@setup(%v) {", "section @setup is defined twice"),
        ("skeleton = @s", "skeleton = @t", "there is no skeleton @t"),
        ("op = gelu", "op = gelus", "ops.toml has no op 'gelus'"),
        ("%b = addf", "%b = hole", "only a skeleton may have holes"),
        ("!line = !cuda_tile.tile<BNxT>", "!line = !cuda_tile.tile<BXxT>", "the entry has no constant BX"),
    ],
)
def test_what_does_not_fit(old: str, new: str, message: str) -> None:
    with pytest.raises(SourceError, match=re.escape(message)):
        composed(old, new)


def test_a_hole_with_results_has_to_be_filled() -> None:
    text = TEXT[: TEXT.index("  @body(%v)")] + "}\n"
    with pytest.raises(SourceError, match="kernel @k does not fill @body"):
        compose(Library({"k.mlir": text}), "k", symbol="k", dtype="f16", constants={"BN": 8, "BR": 4})


def test_a_section_that_the_skeleton_has_no_hole_for() -> None:
    text = TEXT.replace("  @setup {", "  @end { %more = constant <T: 2.0> : !rest }\n  @setup {")
    with pytest.raises(SourceError, match="skeleton @s has no hole @end"):
        compose(Library({"k.mlir": text}), "k", symbol="k", dtype="f16", constants={"BN": 8, "BR": 4})


def test_a_constant_that_no_part_uses() -> None:
    with pytest.raises(SourceError, match="@k does not use the constant BX of k"):
        compose(Library({"k.mlir": TEXT}), "k", symbol="k", dtype="f16", constants={"BN": 8, "BR": 4, "BX": 1})


def test_an_entry_of_another_op() -> None:
    with pytest.raises(SourceError, match="@k implements gelu, but the entry is for softmax"):
        compose(Library({"k.mlir": TEXT}), "k", symbol="k", dtype="f16", constants={"BN": 8, "BR": 4}, op="softmax")


def test_fragments_that_call_each_other_for_ever() -> None:
    text = TEXT.replace("addf %a, %a : !line", "call @double(%a)")
    with pytest.raises(SourceError, match="fragments call one another more than 8 deep"):
        compose(Library({"k.mlir": text}), "k", symbol="k", dtype="f16", constants={"BN": 8, "BR": 4})


FILLED = """!line = !cuda_tile.tile<BNxT>
!rest = !cuda_tile.tile<BRxT>
fragment @double(%a: !line) -> !line {
  %b = addf %a, %a : !line
  yield %b : !line
}
skeleton @base {
  %one = constant <T: 1.0> : !line
  %rest = constant <T: 1.0> : !rest
  %y = hole @body(%one, %rest) -> !line
  hole @end(%y)
  return
}
skeleton @derived, skeleton = @base {
  @body(%one, %rest) {
    %a = hole @value(%one) -> !line
    %b = hole @value<BN = BR>(%rest) -> !rest
    hole @after(%b)
    yield %a : !line
  }
}
kernel @k op = gelu, skeleton = @derived {
  @value = @double
  @end(%y) { %z = mulf %y, %y : !line }
}
"""


def filled(old: str = "", new: str = "") -> str:
    """The composed operations' names and the first size of what they make."""
    assert old in FILLED
    library = Library({"k.mlir": FILLED.replace(old, new, 1) if old else FILLED})
    module = compose(library, "k", symbol="k", dtype="f16", constants={"BN": 8, "BR": 4}, op="gelu")
    inline(module)
    (entry,) = module.entries.values()
    kinds = [(op.name, op.results[0].type) for op in entry.walk() if op.name.endswith(("addf", "mulf"))]
    return " ".join(f"{name[10:]}:{kind.shape[0]}" for name, kind in kinds if isinstance(kind, TileType))


def test_a_fragment_fills_a_hole_wherever_it_stands_and_a_skeleton_fills_another_ones_holes() -> None:
    assert filled() == "addf:8 addf:4 mulf:8"
    assert filled("    hole @after(%b)\n") == "addf:8 addf:4 mulf:8", "an empty hole changes nothing"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("@value = @double", "@value = @triple", "k.mlir:23:12: error: there is no fragment @triple"),
        ("@value = @double", "", "k.mlir:16:15: error: kernel @k does not fill @value"),
        ("@value = @double", "@value(%x) { yield %x : !line }", "hole @value appears twice: a fragment can fill both"),
        ("@value = @double", "@value = @double  @value = @double", "section @value is defined twice"),
        ("@value = @double", "@value = @double  @more = @double", "skeleton @derived has no hole @more"),
        ("@end(%y) {", "@ends(%y) {", "skeleton @derived has no hole @ends"),
        ("(%one) -> !line", "(%one) -> !rest", "hole @value wants tile<4xf16>, @double gives tile<8xf16>"),
        ("hole @value(%one)", "hole @value(%rest)", "%a of @double is tile<8xf16>, %rest is tile<4xf16>"),
        ("%z = mulf %y, %y", "%z = mulf %y, %one", "k.mlir:24:28: error: %one is not defined here"),
        ("hole @after(%b)", "hole @after(%b)\n    hole @after(%b)", "hole @after appears twice"),
    ],
)  # fmt: skip
def test_what_does_not_fill_a_hole(old: str, new: str, message: str) -> None:
    with pytest.raises(SourceError, match=re.escape(message)):
        filled(old, new)


def test_a_section_cannot_fill_a_hole_of_other_sizes() -> None:
    text = FILLED.replace("    %a = hole @value(%one) -> !line\n", "    %a = addf %one, %one : !line\n")
    text = text.replace("@value = @double", "@value(%x) { yield %x : !rest }")
    with pytest.raises(SourceError, match=r"k.mlir:17:15: error: hole @value has other sizes"):
        compose(Library({"k.mlir": text}), "k", symbol="k", dtype="f16", constants={"BN": 8, "BR": 4})


def test_a_size_by_another_name() -> None:
    assert filled("op = gelu,", "op = gelu, BN = BR,") == "addf:4 addf:4 mulf:4"
    with pytest.raises(SourceError, match="the entry has no constant BX"):
        filled("op = gelu,", "op = gelu, BN = BX,")

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.cases.check import Verdict
from benchmarks.harness.harness import Contender
from benchmarks.harness.kernels import Kernels, choose
from toolchain.bundles.bundle import Bundle, BundleEntry, FileRef
from toolchain.contract.artifact import tile_ir
from toolchain.contract.entry import EntrySpec
from toolchain.contract.fastest import Pick
from toolchain.errors import UsageError


def bundle(root: str, *sources: str) -> Bundle:
    nothing = FileRef(Path(), "")
    specs = [EntrySpec(f"gelu_{source}", "gelu", source, "f32") for source in sources]
    return Bundle(Path(root), tuple(BundleEntry(spec, nothing, tile_ir(b"", "13.3").form, {}) for spec in specs), {})


NEW, OLD, MLIR = bundle("new", "mlir", "py"), bundle("old", "mlir", "py"), bundle("mlir", "mlir")


def test_the_kernels_of_a_run_are_of_every_bundle_and_source() -> None:
    assert [(k.name, k.bundle) for k in choose(NEW, {"old": OLD, "text": MLIR}, ())] == [
        ("mlir", NEW), ("py", NEW), ("old mlir", OLD), ("old py", OLD), ("text mlir", MLIR)
    ]  # fmt: skip
    assert [k.name for k in choose(NEW, {"old": OLD}, ["py"])] == ["py", "old py"]


def test_the_fastest_source_is_one_of_a_bundle_that_says_what_it_takes() -> None:
    pick = Pick("gelu", "all", ("f32",), "py", (), {})
    assert [k.name for k in choose(replace(NEW, picks={"sm_90": (pick,)}), {}, ())] == ["mlir", "py", "fastest"]
    assert [k.name for k in choose(NEW, {"old": OLD}, ["fastest"])] == ["fastest", "old fastest"]


@pytest.mark.parametrize(
    ("measured", "sources", "message"), [(NEW, ["c"], "new has no source c"), (NEW, ["py"], "mlir has no source py")]
)
def test_what_cannot_be_compared_is_refused(measured: Bundle, sources: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        choose(measured, {"text": MLIR}, sources)


def test_another_bundles_kernels_are_a_peer_of_ours_of_the_same_source() -> None:
    built: list[Kernels] = []

    def build(kernels: Kernels) -> Contender:
        built.append(kernels)
        return Contender(lambda: Verdict(0, 0, 0, 0), lambda: 0.0)

    ours, other = Kernels(NEW, "py"), Kernels(OLD, "py", "old")
    first, second = (kernels.maker(build) for kernels in (ours, other))
    assert (first.name, first.kind, first.beside) == ("py", "ours", "")
    assert (second.name, second.kind, second.beside) == ("old py", "against", "py")
    first.build()
    second.build()
    assert built == [ours, other]

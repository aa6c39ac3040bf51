"""Compiling variants, with a pipeline that compiles nothing: the status that each variant gets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from toolchain.bundles import bundle
from toolchain.bundles.bundle import Bundle, Compiled
from toolchain.caching.cache import Cache
from toolchain.compiling import cubin
from toolchain.compiling.cubin import Usage
from toolchain.compiling.pipeline import Failure, Outcome
from toolchain.contract.artifact import tile_ir
from toolchain.contract.entry import EntrySpec
from toolchain.contract.targets import targets
from toolchain.errors import SourceError, ToolchainError, UsageError
from tune import candidates
from tune.candidates import Compiler
from tune.catalogue import Catalogue
from tune.spaces import Spaces

OWN_ENTRY = EntrySpec("gelu_1024_bf16", "gelu", "py", "bf16", {"BN": 1024}, grid=("M", "1", "1"))
RUN = Callable[[], Catalogue]


class Source:
    """A source whose kernel is one file. Its exporter raises for the entries in `raising`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.raising: set[str] = set()
        self.own = [OWN_ENTRY, EntrySpec("softmax_f32", "softmax", "py", "f32", grid=("M", "1", "1"))]

    def entries(self) -> list[EntrySpec]:
        return self.own

    def artifact(self, spec: EntrySpec, version: str = "13.3") -> bytes:
        if not self.path.exists() and spec not in self.own:
            raise SourceError(f"{spec.symbol}: there is no kernel")
        if spec.symbol in self.raising:
            raise AssertionError(f"never thought of {spec.symbol}")
        return version.encode()


class Pipeline:
    """Stands in for compile_entries, inspect and the tools, as the compiler of variants uses them."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.failing: set[str] = set()
        self.usage: dict[str, dict[str, int]] = {}
        self.calls: list[list[str]] = []

    def compile_entries(self, entries: Sequence[tuple[str, EntrySpec]], *_: Any, **__: Any) -> Outcome:
        specs = [spec for _, spec in entries]
        self.calls.append([spec.symbol for spec in specs])
        failed = [
            Failure(f"gelu-py-bf16-sm_90 ({s.symbol})", ToolchainError("no")) for s in specs if s.symbol in self.failing
        ]
        for spec in specs:
            try:
                self.source.artifact(spec)
            except SourceError as error:
                failed.append(Failure(f"gelu-py-bf16-sm_90 ({spec.symbol})", error))
        broken = {failure.cell.rpartition("(")[2].rstrip(")") for failure in failed}
        made = [
            Compiled(spec, tile_ir(b"bytecode", "13.3"), {"sm_90": spec.symbol.encode()})
            for spec in specs
            if spec.symbol not in broken
        ]
        return Outcome(made, failed, len(made), 0)

    def inspect(self, cubin: bytes) -> list[Usage]:
        symbol = cubin.decode()
        numbers = {
            "registers": 32,
            "shared": 0,
            "stack": 0,
            "local": 0,
            "instructions": 9,
            "spills": 0,
            "serialised": 0,
        }
        return [Usage(symbol, **(numbers | self.usage.get(symbol, {})), tensor_core={}, copy_engine={})]


@pytest.fixture
def source(tmp_path: Path) -> Source:
    path = tmp_path / "gelu.py"
    path.write_text("kernel")
    return Source(path)


@pytest.fixture
def pipeline(source: Source, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    made = Pipeline(source)
    monkeypatch.setattr(candidates, "compile_entries", made.compile_entries)
    monkeypatch.setattr(cubin, "inspect", made.inspect)
    monkeypatch.setattr(cubin, "tool", lambda _: SimpleNamespace(fingerprint="f"))
    monkeypatch.setattr(candidates, "load_source", lambda _: source)
    monkeypatch.setattr(candidates, "tuned_symbols", lambda _: set[str]())
    monkeypatch.setattr(candidates, "tools_used", lambda _: {"tileiras": {"version": "1", "sha256": "t"}})
    return made


@pytest.fixture
def run(pipeline: Pipeline, spaces: Spaces, tmp_path: Path) -> RUN:  # noqa: ARG001 - it stands in for the real one
    compiler = Compiler({"py": "kernels"}, targets()["sm_90"], Cache(tmp_path / "cache"), 2)
    return lambda: compiler.run(spaces.spaces, tmp_path / "out")


def test_what_compiled_is_in_the_bundle_and_everything_in_the_list(
    run: RUN, pipeline: Pipeline, source: Source, tmp_path: Path
) -> None:
    pipeline.failing = {"gelu_64_1_bf16"}
    pipeline.usage = {"gelu_128_2_bf16": {"spills": 7}}
    catalogue = run()
    assert catalogue.counts() == "1 failed, 3 compiled, 1 pruned"
    rows = {c.spec.symbol: (c.status, c.why) for c in catalogue.candidates}
    assert rows["gelu_64_1_bf16"] == ("failed", "no")
    assert rows["gelu_128_2_bf16"] == ("pruned", "7 spills to memory")
    variants = Bundle.load(tmp_path / "out" / "bundle")
    assert [e.spec.symbol for e in variants.entries] == ["gelu_64_2_bf16", "gelu_128_1_bf16", "gelu_256_1_bf16"]
    own = Bundle.load(tmp_path / "out" / "own")
    assert [e.spec.symbol for e in own.entries] == [OWN_ENTRY.symbol], "no other op, no other dtype"
    assert catalogue.tools == {"tileiras": "t"}
    assert [(c.title, len(c.shapes)) for c in catalogue.contests] == [("gelu bf16 few", 2), ("gelu bf16 many", 1)]
    again = Catalogue.load(tmp_path / "out")
    assert again == catalogue
    assert source.path.exists()


def test_tuned_entries_are_not_a_sources_own(
    run: RUN, source: Source, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = EntrySpec("gelu_sm_90_few_bf16", "gelu", "py", "bf16", grid=("M", "1", "1"), targets=("sm_90",))
    source.own.insert(0, before)
    monkeypatch.setattr(candidates, "tuned_symbols", lambda _: {before.symbol})
    run()
    assert [e.spec.symbol for e in Bundle.load(tmp_path / "out" / "own").entries] == [OWN_ENTRY.symbol]


def test_an_exporter_that_does_not_survive_a_variant_costs_that_variant(run: RUN, source: Source) -> None:
    source.raising = {"gelu_64_2_bf16", "gelu_256_1_bf16"}
    rows = {c.spec.symbol: c for c in run().candidates}
    assert [s for s, c in rows.items() if c.status == "compiled"] == [
        f"gelu_{n}_bf16" for n in ("64_1", "128_1", "128_2")
    ]
    why = rows["gelu_64_2_bf16"].why
    assert why.startswith("AssertionError: never thought of gelu_64_2_bf16\nTraceback") and "in artifact" in why


def test_a_kernel_that_is_not_there_fails_all_its_variants(run: RUN, source: Source, tmp_path: Path) -> None:
    source.path.unlink()
    with pytest.raises(
        ToolchainError, match=r"no variant is left to measure: 5 failed; the first: .*there is no kernel"
    ):
        run()
    assert {c.status for c in Catalogue.load(tmp_path / "out").candidates} == {"failed"}


def test_own_entries_that_do_not_compile_end_the_search(run: RUN, pipeline: Pipeline) -> None:
    pipeline.failing = {OWN_ENTRY.symbol}
    with pytest.raises(
        ToolchainError, match=r"gelu_1024_bf16\) does not compile, but variants are compared with it: no"
    ):
        run()


def test_a_folder_that_is_no_search_is_not_overwritten(run: RUN, tmp_path: Path, pipeline: Pipeline) -> None:
    (tmp_path / "out" / "own").mkdir(parents=True)
    (tmp_path / "out" / "own" / "precious").touch()
    with pytest.raises(UsageError, match="not overwritten"):
        run()
    assert pipeline.calls == []


@pytest.mark.parametrize("written", [0, 1])
def test_a_compile_that_is_interrupted_leaves_no_search_of_two(
    run: RUN, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    run()
    write, calls = bundle.write, iter(range(2))

    def interrupted(*arguments: Any) -> Bundle:
        if next(calls) == written:
            raise KeyboardInterrupt
        return write(*arguments)

    monkeypatch.setattr(bundle, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run()
    with pytest.raises(UsageError, match="tilestack tune --phase compile writes it"):
        Catalogue.load(tmp_path / "out")
    monkeypatch.setattr(bundle, "write", write)
    assert run() == Catalogue.load(tmp_path / "out")


def test_usage_is_looked_up_in_the_cache(run: RUN, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline.usage = {"gelu_128_2_bf16": {"spills": 7}}
    first = run()
    monkeypatch.setattr(cubin, "inspect", lambda _: pytest.fail("a cubin was disassembled again"))
    assert run() == first


@pytest.mark.parametrize(
    ("op", "dtype", "tensor_core", "why"),
    [
        ("linear", "bf16", {}, "no tensor-core instruction"),
        ("linear", "f16", {"HGMMA": 4}, ""),
        ("linear", "f32", {}, ""),
        ("gelu", "bf16", {}, ""),
    ],
)
def test_products_in_16_bits_must_use_the_tensor_cores(
    op: str, dtype: str, tensor_core: dict[str, int], why: str
) -> None:
    usage = Usage("k", 255, 0, 0, 0, 9, 0, 0, tensor_core, {})
    spec = EntrySpec("k", op, "py", dtype)
    assert candidates._useless(spec, usage, needs=True) == why
    assert not candidates._useless(spec, usage, needs=False), "one that multiplies element by element"

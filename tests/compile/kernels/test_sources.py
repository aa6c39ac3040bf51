"""Both kernel sources against the pinned tools: what they export is what the tools read, and nothing else is in it."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from xdsl.ir import BlockArgument

import kernels_mlir
import kernels_py
from tests.compile import compiled
from toolchain.contract.entry import EntrySpec
from toolchain.contract.op import ops
from toolchain.contract.sources import load_source
from toolchain.contract.targets import BYTECODE
from toolchain.errors import BytecodeError, SourceError
from toolchain.knobs import ROOT
from toolchain.pinned.tools import tool
from toolchain.tileir import bytecode, text
from toolchain.tileir.compose.sample import sample
from toolchain.tileir.dialect.attrs import DivByAttr
from toolchain.tileir.dialect.control import EntryOp, ModuleOp
from toolchain.tileir.dialect.ops import AssumeOp, GdcLaunchDependentsTkoOp, GdcWaitTkoOp, TanHOp
from toolchain.tileir.dialect.verify import verify

SOURCES = {"mlir": kernels_mlir.SOURCE, "py": kernels_py.SOURCE}
ENTRIES = [spec for source in SOURCES.values() for spec in source.entries()]
KERNELS = [path for path in sorted((ROOT / "kernels_mlir").glob("*.mlir")) if "\nkernel @" in path.read_text()]
OPS = [op for op in ops().values() if not op.whole]  # what both sources have
VERSIONS = ("13.1", "13.2", "13.3", "13.4")


def first(op: str, dtype: str) -> str:
    """The symbol of an op's first entry that is for every target."""
    return next(s.symbol for s in ENTRIES if (s.op, s.dtype, s.targets) == (op, dtype, ()))


SOME = (
    first("layernorm", "bf16"),
    first("attention", "bf16"),
    first("linear_gelu", "f16"),
    first("argmax_parts", "f32"),
)


Exported = Callable[[EntrySpec], bytes]


def test_tiles_of_two_parts_have_a_grid_of_one_row() -> None:
    """Their accumulators start with the block index in y, which is 0 only in the first row of the grid."""
    pairs = [spec for spec in ENTRIES if "BR" in spec.constants and spec.op_spec.products]
    assert {"linear_split_n", "linear_residual_squares_split_n_mma"} <= {spec.kernel for spec in pairs}
    assert {spec.op for spec in pairs} == {
        "linear", "linear_gelu", "linear_residual", "logits", "rms_linear", "rms_linear_gelu", "linear_residual_squares"
    }  # fmt: skip
    assert {spec.grid[1:] for spec in pairs} == {("1", "1")}


def test_every_part_of_a_kernel_in_text_is_used_by_an_entry() -> None:
    library = kernels_mlir.SOURCE.library
    kernels = {spec.kernel or spec.op for spec in ENTRIES if spec.source == "mlir"}
    used = {name for kernel in kernels for name in library.written(kernel)}
    assert {f"{kind} @{name}" for kind, name in library.items} - used == set()


def test_every_kernel_in_python_is_used_by_an_entry() -> None:
    kernels = {spec.kernel or spec.op for spec in ENTRIES if spec.source == "py"}
    text = "\n".join(path.read_text() for path in (ROOT / "kernels_py").rglob("*.py"))
    written = re.findall(r"@ct\.kernel[^\n]*\ndef (\w+)", text)
    shared = re.findall(r"^([a-z]\w*) = [a-z]\w*$", text, re.MULTILINE)
    assert shared
    assert {*written, *shared} == kernels


def test_every_part_of_a_kernel_in_python_is_used() -> None:
    text = "\n".join(path.read_text() for path in (ROOT / "kernels_py").rglob("*.py") if path.name != "__init__.py")
    parts = re.findall(r"(?<!ct\.kernel\n)^def (\w+)", text, re.MULTILINE)
    assert {"persistent", "split_n", "bias_rows", "add_residual"} <= set(parts)
    called = re.sub(r"def \w+|import \([^)]*\)|import .*", "", text)
    assert {part for part in parts if not re.search(rf"\b{part}\b", called)} == set()


@pytest.mark.parametrize("source", list(SOURCES))
@pytest.mark.parametrize("head", [32, 64, 128])
def test_every_op_and_dtype_has_an_entry_that_takes_any_size_and_alignment(source: str, head: int) -> None:
    # Odd, and the sizes that follow from others: of spans and parts there are as many as the entries' are long.
    # Not every target has 8-bit floats: what takes them has such an entry for the target that it was written for.
    sizes = dict.fromkeys("BCHKLMNPTV", 37) | {"D": head, "E": head // 2, "S": 41, "Z": 1, "TWO": 2}
    sizes |= {"PAGE": 128, "L": 2}
    for op in OPS:
        dims = {d: sizes.get(d, 37) for p in op.params for d in p.dims}
        if op.name == "paged_decode_attention":
            dims["T"] = 1  # one token, as in the other ops of a decoding step
        if op.name == "rope_decode_attention":
            dims["Q"] = 8  # as many as it says
        if op.name == "merge_linear_residual_squares":
            dims["K"] = dims["H"] * head
        anything = frozenset(p.name for p in op.params)
        floats = any(p.dtype == "f8E4M3FN" for p in op.params)
        for dtype in op.dtypes:
            rows = [s for s in ENTRIES if (s.source, s.op, s.dtype) == (source, op.name, dtype)]
            fitting = (s for s in rows if s.unmet(dims, anything) is None and (floats or not s.targets))
            assert any(fitting), (
                f"no portable entry of {op.name} {dtype} takes {dims} unaligned: give it one, or `sizes` a size"
            )


def divisors(entry: EntryOp) -> dict[int, int]:
    """What each argument is assumed to be a multiple of."""
    found: dict[int, int] = {}
    for op in entry.body.block.ops:
        if isinstance(op, AssumeOp) and isinstance(op.predicate, DivByAttr):
            value = op.value
            while isinstance(value.owner, AssumeOp):  # assumed to be something else before
                value = value.owner.value
            if isinstance(value, BlockArgument):  # not a size that is compiled in
                found[value.index] = op.predicate.divisor
    return found


def hints(entry: EntryOp) -> dict[str, dict[str, int]]:
    given = entry.optimization_hints.data if entry.optimization_hints else ()
    return {target: dict(values) for target, values in given if values}


def described(spec: EntrySpec, exported: Exported) -> tuple[Any, ...]:
    """An entry's parameters, promises and hints, and how exact its tanh is."""
    entry = bytecode.read(exported(spec)).entries[spec.symbol]
    tanh = {op.rounding_mode.data for op in entry.walk() if isinstance(op, TanHOp)}
    return [str(a.type) for a in entry.body.block.args], divisors(entry), hints(entry), tanh


def check_both_sources(symbols: Iterable[str], exported: Exported) -> None:
    specs = {(spec.source, spec.symbol): spec for spec in ENTRIES}
    for symbol in symbols:
        assert described(specs["mlir", symbol], exported) == described(specs["py", symbol], exported), symbol


def in_both(specs: Iterable[EntrySpec]) -> list[str]:
    """The symbols that both sources have: tuned ones may be for one source."""
    found: dict[str, set[str]] = {}
    for spec in specs:
        found.setdefault(spec.symbol, set()).add(spec.source)
    return [symbol for symbol, sources in found.items() if len(sources) == len(SOURCES)]


def test_an_entry_for_every_target_is_in_both_sources() -> None:
    portable = [spec for spec in ENTRIES if not spec.targets]
    assert set(in_both(portable)) == {spec.symbol for spec in portable}


def of_each_kind(specs: Iterable[EntrySpec]) -> list[EntrySpec]:
    """One entry of each kind: the last, which is in bf16 where there is one. Entries of a kind have the same kernel,
    targets and promises, but other dtypes, tile sizes and conditions. A tile of one row is a kind of its own."""
    kinds: dict[object, EntrySpec] = {}
    for spec in specs:
        constants = tuple((name, size == 1) for name, size in spec.constants.items())
        promises = (spec.aligned, spec.contiguous, tuple(spec.multiples), tuple(spec.sizes))
        kinds[spec.op, spec.kernel, spec.targets, constants, promises] = spec
    return list(kinds.values())


@pytest.mark.parametrize("name", [op.name for op in OPS])
def test_both_sources_have_the_same_abi_promises_hints_and_precision(
    name: str, exported: Exported, everything: bool
) -> None:
    """On one entry of each kernel, dtype and set of promises: what an entry adds to these is compiled alike. With all,
    on one of each target's kinds too."""
    both = set(in_both(ENTRIES))
    of_op = [spec for spec in ENTRIES if spec.op == name and spec.symbol in both]
    kinds = {(s.kernel, s.dtype, s.aligned, tuple(s.multiples), bool(s.sizes)): s.symbol for s in of_op}
    assert kinds
    more = {spec.symbol for spec in of_each_kind(of_op)} if everything else set[str]()
    check_both_sources(more | set(kinds.values()), exported)


def test_of_a_contiguous_array_the_address_alone_is_promised(exported: Exported) -> None:
    contiguous = [spec for spec in ENTRIES if spec.contiguous]
    assert {spec.source for spec in contiguous} == set(SOURCES)
    for spec in contiguous:  # softmax: address, two sizes and two strides of x, then of out
        assert divisors(bytecode.read(exported(spec)).entries[spec.symbol]) == {0: 16, 5: 16}


@pytest.mark.parametrize("source", list(SOURCES))
def test_an_entry_without_one_of_its_kernels_constants_is_refused(source: str) -> None:
    """For example one tuned before the kernel had this constant: it would run with the value that stands in the
    file."""
    spec = next(spec for spec in ENTRIES if (spec.op, spec.source) == ("attention", source))
    fewer = {name: size for name, size in spec.constants.items() if name != "GROUP"}
    with pytest.raises(SourceError, match="GROUP"):
        SOURCES[source].bytecode(replace(spec, constants=fewer, grid=("1", "1", "1")))


def one_per_kernel(source: str) -> list[EntrySpec]:
    """An entry of each of the source's kernels and dtypes: the last, which takes any size."""
    found = {(spec.kernel or spec.op, spec.dtype): spec for spec in ENTRIES if spec.source == source}
    return list(found.values())


def check_export(spec: EntrySpec, exported: Exported) -> None:
    data = exported(spec)
    module = bytecode.read(data, name=spec.symbol)
    verify(module)
    assert waits(module) == (1, 1), spec.symbol
    assert bytecode.write(module, BYTECODE) == data
    printed = text.print_module(module)
    assert bytecode.write(text.parse(printed, filename=spec.symbol), BYTECODE) == data


@pytest.mark.parametrize("source", list(SOURCES))
def test_what_is_exported_waits_once_reads_verifies_and_prints_back_to_the_same_bytes(
    source: str, exported: Exported, everything: bool
) -> None:
    of_source = [spec for spec in ENTRIES if spec.source == source]
    more = of_each_kind(of_source) if everything else [spec for spec in of_source if spec.symbol in SOME]
    for spec in {spec.symbol: spec for spec in [*one_per_kernel(source), *more]}.values():
        check_export(spec, exported)


def waits(module: ModuleOp) -> tuple[int, int]:
    """How often it waits for the previous launch, and how often it lets the next one begin."""
    names = [op.name for op in module.walk()]
    return names.count(GdcWaitTkoOp.name), names.count(GdcLaunchDependentsTkoOp.name)


@pytest.mark.needs("toolchain")
@pytest.mark.parametrize("symbol", ["gelu_1024_f32", "layernorm_two_pass_wide_f32"])
@pytest.mark.parametrize("source", list(SOURCES))
def test_a_kernel_waits_on_a_gpu_that_overlaps_launches(source: str, symbol: str, tmp_path: Path) -> None:
    """A kernel that does not mention waiting, and one that reads its weight and bias before it waits."""
    spec = next(s for s in ENTRIES if (s.source, s.symbol) == (source, symbol))
    for version, target, wanted in (("13.3", "sm_90", 0), ("13.4", "sm_80", 0), ("13.4", "sm_90", 1)):
        data = SOURCES[source].bytecode(spec, version)
        assert waits(bytecode.read(data)) == (version == "13.4",) * 2
        (tmp_path / "k.cubin").write_bytes(compiled.cubin(data, target))
        code = tool("nvdisasm").run(["--print-code", str(tmp_path / "k.cubin")]).stdout
        assert (code.count("PREEXIT"), code.count("ACQBULK")) == (wanted, wanted)
        if wanted:
            before, after = code.split("ACQBULK")
            assert ("LDG" in before) == (spec.op == "layernorm")
            assert "PREEXIT" in before and "LDG" in after and "STG" in after and "STG" not in before


@pytest.mark.needs("toolchain")
@pytest.mark.parametrize("op", ["rms_linear", "rms_swiglu", "linear_residual_squares"])
def test_a_product_of_one_row_reads_its_weights_before_it_waits(op: str, tmp_path: Path, exported: Exported) -> None:
    """All of them, in both sources: a read whose token the wait does not take may be moved behind it."""
    early: dict[str, int] = {}
    for source in SOURCES:
        spec = next(s for s in ENTRIES if (s.source, s.kernel, s.dtype) == (source, f"{op}_gemv", "bf16"))
        (tmp_path / "k.cubin").write_bytes(compiled.cubin(exported(spec), "sm_90"))
        code = tool("nvdisasm").run(["--print-code", str(tmp_path / "k.cubin")]).stdout
        before, after = (re.findall(r"\bLDG\S*", part) for part in code.split("ACQBULK"))
        early[source] = len(before)
        assert len(before) > len(after), "x alone, and what comes with it, is read later"
    assert len(set(early.values())) == 1, early


MERGING = "merge_linear_residual_squares"


@pytest.mark.needs("toolchain")
@pytest.mark.parametrize("source", list(SOURCES))
def test_a_product_that_merges_spans_reads_its_weights_as_early_as_the_one_that_does_not(
    source: str, tmp_path: Path, exported: Exported
) -> None:
    early = list[int]()
    (merging,) = (
        s for s in ENTRIES if (s.source, s.op, s.targets) == (source, MERGING, ("sm_90",)) and s.dtype == "bf16"
    )
    shape = {name: merging.constants[name] for name in ("BM", "BN", "BK")}
    same = {"source": source, "dtype": "bf16", "sizes": {}, "hints": merging.hints, "constants": shape}
    plain = next(
        s for s in ENTRIES if s.op == "linear_residual_squares" and all(getattr(s, k) == v for k, v in same.items())
    )
    for spec in (merging, plain):
        (tmp_path / "k.cubin").write_bytes(compiled.cubin(exported(spec), "sm_90"))
        before, after = tool("nvdisasm").run(["--print-code", str(tmp_path / "k.cubin")]).stdout.split("ACQBULK")
        early.append(before.count("LDG"))
        assert after.count("BAR.SYNC") < 8, "the threads of a block wait for one another at each span"
    assert early[0] == early[1]


@pytest.mark.needs("toolchain")
@pytest.mark.parametrize("name", [op.name for op in OPS])
def test_kernels_for_all_targets_compile_for_one_that_they_were_not_measured_on(name: str, exported: Exported) -> None:
    """The compiler has other passes for the tensor cores of Blackwell, and crashes of its own in them. One entry of
    each kernel and source, if it is not known."""
    rows = compiled.portable(ENTRIES, name)
    chosen = {(spec.source, spec.kernel): spec for spec in reversed(rows)}  # the first: by TMA, where it can
    assert compiled.broken(compiled.new(compiled.PORTABLE, [*chosen.values()], exported), exported) == []


@pytest.mark.needs("toolchain")
@pytest.mark.long("exports every entry for all targets; by default one of each kernel is compiled")
@pytest.mark.parametrize("name", [op.name for op in OPS])
def test_entries_for_all_targets_compile_for_one_that_they_were_not_measured_on(name: str, exported: Exported) -> None:
    """Those of which it is not known."""
    rows = compiled.portable(ENTRIES, name)
    assert compiled.broken(compiled.new(compiled.PORTABLE, rows, exported), exported) == []


def since(printed: str) -> str:
    """The bytecode version that a module needs, from its text."""
    if "gdc_wait_tko" in printed:
        return "13.4"
    if "strided_view" in printed or "fast_acc" in printed:
        return "13.3"
    return "13.2" if "tanh" in printed else VERSIONS[0]  # since when `tanh` may be approximate


sampled = functools.cache(sample)  # its module is only read


@pytest.mark.needs("toolchain")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("path", KERNELS, ids=lambda p: p.stem)
def test_committed_text_is_what_the_disassembler_reads(path: Path, version: str, tmp_path: Path) -> None:
    module = sampled(path)
    if version < since(text.print_module(module)):
        with pytest.raises(BytecodeError, match=f"bytecode {version} has no (rounding_mode|fast_acc|such operation)"):
            bytecode.write(module, version)
        return
    data = bytecode.write(module, version)
    file = tmp_path / f"{version}.tilebc"
    file.write_bytes(data)
    printed = tool("tileirdisasm").run([str(file)]).stdout
    assert bytecode.write(text.parse(printed, filename="disassembled"), version) == data


@pytest.mark.parametrize("source", ["kernels_mlir", "kernels_py"])
def test_the_place_of_the_source_is_not_in_its_bytecode(source: str, tmp_path: Path, exported: Exported) -> None:
    folder = tmp_path / "another place"
    for package in ("entries", "toolchain", source):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    code = f"""
import sys
sys.path.insert(0, {str(folder)!r})
from {source} import SOURCE, HERE
assert str(HERE).startswith({str(folder)!r})
for spec in SOURCE.entries():
    if spec.symbol in {SOME!r}:
        print(spec.symbol, SOURCE.bytecode(spec).hex())
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    there = dict(line.split() for line in done.stdout.splitlines())
    assert set(there) == set(SOME)
    for spec in ENTRIES:
        if spec.source == load_source(source).name and spec.symbol in SOME:
            data = exported(spec)
            assert data.hex() == there[spec.symbol]
            assert b"kernels" not in data
            assert b".py" not in data


def test_the_fingerprint_follows_the_entry() -> None:
    for source in SOURCES.values():
        prints = [source.fingerprint(spec) for spec in source.entries()]
        assert len(set(prints)) == len(prints)


@pytest.mark.parametrize("source", list(SOURCES.values()), ids=list(SOURCES))
def test_an_entry_of_no_kernel_is_an_error(source: Any) -> None:
    spec = EntrySpec("linear_tuned", "linear", source.name, "bf16", kernel="products_of_all")
    with pytest.raises(SourceError, match=r"linear_tuned: .*kernel @?products_of_all"):
        source.bytecode(spec)

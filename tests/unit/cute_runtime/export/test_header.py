"""The header of a bundle, built and run over a driver that prints what is launched."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from cute_runtime.export.header import TYPES, Export, choose
from toolchain.bundles.bundle import Bundle, Compiled, write
from toolchain.contract.artifact import TensorMap, ptx, tile_ir
from toolchain.contract.entry import EntrySpec
from toolchain.contract.op import ops
from toolchain.contract.policy import TileCost
from toolchain.errors import BundleError, LaunchError, UsageError

CODE = tile_ir(b"", "13.4")
MATRIX, VECTOR = "8 4 4 4 4", "8 4 4"  # the sizes of the parameters of an array
FAST = {
    "constants": {"BM": 64, "BN": 32}, "aligned": ("x",), "contiguous": ("out",), "multiples": {"N": 8},
    "where": ("M % 3 != 1", "cdiv(N, BN) <= 4"), "grid": ("cdiv(M, BM)", "min(SMS, cdiv(N, BN))", "1"),
    "cost": TileCost(4, ((64, 32, 10), (128, 64, 15)), 2),
}  # fmt: skip
PROGRAM = """
#include "kernels.hpp"
#include <cstdlib>
#include <iostream>
using namespace cute_runtime;
int main(int, char** words) try {
  const auto number = [&words](int i) { return std::atoi(words[i]); };
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  tilestack_kernels::Kernels kernels{Device(0)BUNDLE};
  const std::string which = words[1];
  const std::int32_t m = number(2), n = number(3), gap = number(4);
  const Array<float, 2> x{4096 + static_cast<CUdeviceptr>(number(5)), {m, n}, {n + gap, 1}};
  const Array<float, 2> out{65536, {m, n}, {n + gap, 1}};
  if (which == "gelu") kernels.gelu_f32(x, out);
  if (which == "any") kernels.launch_gelu_f32({x, out}, reinterpret_cast<CUstream>(16));
  if (which == "fast") kernels.launch_gelu_fast_f32({x, out});
  if (which == "other") kernels.gelu_f32(x, {65536, {m, n + 1}, {n + 1, 1}});
  if (which == "strided") kernels.gelu_f32({4096, {m, n}, {n, 2}}, out);
  const Array<float16, 1> vector{512, {n}, {1}};
  const Array<float16, 2> half{256, {m, n}, {n + gap, 1}};
  if (which == "norm") kernels.layernorm_f16(half, vector, vector, half, 0.5f);
} catch (const Error& error) { std::cout << "Error " << error.code << ": " << error.what() << "\\n"; }
"""


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    def compiled(symbol: str, op: str, dtype: str, image: str, artifact=CODE, **spec: object) -> Compiled:
        cubin = f"params {image}".encode() + b"\0"
        return Compiled(EntrySpec(symbol, op, "mlir", dtype, **spec), artifact, {"sm_90": cubin})  # type: ignore[arg-type]

    form = ptx("", block=(128, 2, 1), shared_bytes=65536, index_bits=32)
    gelu, norm = ("gelu", "f32", f"{MATRIX} {MATRIX}"), ("layernorm", "f16", f"{MATRIX} {VECTOR} {VECTOR} {MATRIX} 4")
    entries = [
        compiled("gelu_fast_f32", *gelu, **FAST),
        compiled("gelu_f32", *gelu, grid=("M", "N", "1"), sizes={"N": 16}),
        compiled("gelu_wide_f32", *gelu, grid=("M", "cdiv(N, 7)", "1"), where=("N > 16",)),
        compiled("layernorm_f16", *norm, form, grid=("N", "1", "1")),
    ]
    return write(tmp_path_factory.mktemp("bundle") / "b", entries, {})


def header(bundle: Bundle, **options: bool) -> str:
    source, target, entries = choose(bundle, None, None, (), ())
    return Export(bundle, source, target, entries, "tilestack_kernels", **options).text()


@pytest.fixture(scope="module")
def run(bundle: Bundle, build: Callable[..., Path], driver, tmp_path_factory: pytest.TempPathFactory):
    """Runs one launch; the cubins are read from the bundle's folder, or embedded."""
    folder = tmp_path_factory.mktemp("program")

    def program(embed: bool) -> Path:
        place = folder / str(embed)
        place.mkdir(exist_ok=True)
        (place / "kernels.hpp").write_text(header(bundle, embed=embed))
        source = place / "program.cpp"
        source.write_text(PROGRAM.replace("BUNDLE", "" if embed else f', "{bundle.root}"'))
        return build(source)

    made: dict[bool, Path] = {}

    def run(*words: object, embed: bool = False) -> list[str]:
        if embed not in made:
            made[embed] = program(embed)
        lines = driver.run(made[embed], *map(str, words)).splitlines()
        return [line for line in lines if not line.startswith(("retain", "load", "unload", "release"))]

    return run


def hexadecimal(numbers: tuple[int, ...]) -> str:
    """The parameters of an array: an address, then 32-bit numbers."""
    return " ".join([f"{numbers[0]:016x}", *(f"{number & 0xFFFFFFFF:08x}" for number in numbers[1:])])


@pytest.mark.needs("g++")
def test_the_entry_the_grid_and_the_parameters_are_those_that_python_chooses(bundle: Bundle, run) -> None:
    shapes = itertools.product((0, 1, 63, 65, 200), (8, 16, 20, 104, 136), (0, 1, 4), (0, 4, 16))
    some = [shape for index, shape in enumerate(shapes) if index % 2 == 0]
    seen: set[str] = set()
    for m, n, gap, offset in some:
        lines = run("gelu", m, n, gap, offset)
        aligned = (n + gap) * 4 % 16 == 0
        misaligned = frozenset(name for name, bad in (("x", not aligned or offset % 16), ("out", not aligned)) if bad)
        gapped = frozenset({"x", "out"} if gap and m > 1 and n else set()) | (
            frozenset({"x"}) if offset % 16 else set()
        )
        try:
            entry = bundle.select("mlir", "gelu", "f32", {"M": m, "N": n}, misaligned, gapped, "sm_90")
        except LaunchError as error:
            wanted = error.args[0].split("\n", 1)[1]
            assert lines[0] == "Error 0: gelu_f32: no entry fits:" and "\n".join(lines[1:]) == wanted
            continue
        grid = entry.spec.grid_for({"M": m, "N": n}, 132)
        if min(grid) == 0:
            assert lines == []
            continue
        seen.add(entry.spec.symbol)
        arrays = " ".join(hexadecimal((address, m, n, n + gap, 1)) for address in (4096 + offset, 65536))
        blocks = ",".join(map(str, grid))
        assert lines == [f"launch {entry.spec.symbol} grid {blocks} block 1,1,1 shared 0 with {arrays}"], (m, n, gap)
    assert seen == {"gelu_fast_f32", "gelu_f32", "gelu_wide_f32"}


@pytest.mark.needs("g++")
def test_an_entry_by_its_name_and_its_block_and_shared_memory(run) -> None:
    x, out = (hexadecimal((address, 3, 16, 16, 1)) for address in (4096, 65536))
    assert run("any", 3, 16, 0, 0) == [f"launch gelu_f32 grid 3,16,1 block 1,1,1 shared 0 with {x} {out}"]
    lines = run("fast", 3, 136, 0, 0)
    assert lines == ["Error 0: gelu_f32: no entry fits:", "  gelu_fast_f32: cdiv(N, BN) <= 4 does not hold"]
    many, cheaper = (run("fast", m, 104, 0, 0)[1] for m in (200, 65))
    assert many == "  gelu_fast_f32: tiles of 64 x 32 take more than 2 rounds of 4"
    assert cheaper == "  gelu_fast_f32: tiles of 128 x 64 are cheaper than of 64 x 32"
    half, vector = hexadecimal((256, 2, 8, 8, 1)), hexadecimal((512, 8, 1))
    assert run("norm", 2, 8, 0, 0) == [
        "shared memory up to 65536",
        f"launch layernorm_f16 grid 2,1,1 block 128,2,1 shared 65536 with {half} {vector} {vector} {half} 3f000000",
    ]


@pytest.mark.needs("g++")
def test_arrays_that_do_not_belong_together_are_refused(run) -> None:
    assert run("other", 3, 16, 0, 0) == ["Error 0: gelu_f32: N is 16 in one array and 17 in another"]
    assert run("strided", 3, 16, 0, 0)[0] == "Error 0: gelu_f32: the last stride of x is 2: it must be 1"


@pytest.mark.needs("g++")
def test_an_array_beyond_the_bits_of_a_kernel_is_refused_in_pythons_words(bundle: Bundle, run) -> None:
    m, n, gap = 2, 8, 2**31 - 16
    assert len(run("norm", m, n, gap, 0)) == 2  # the last element that 32 bits count to
    assert len(run("norm", 0, n, gap + 1, 0)) == 0  # an empty array has no last element
    with pytest.raises(LaunchError) as python:
        bundle.find("mlir", "layernorm_f16").form.check_reach("layernorm_f16", "x", (m, n), (n + gap + 1, 1))
    assert "\n".join(run("norm", m, n, gap + 1, 0)) == f"Error 0: {python.value}"
    assert run("any", m, 16, gap - 7, 0)[0].startswith("launch gelu_f32")  # it counts in 64 bits


@pytest.mark.needs("g++")
def test_an_embedded_header_needs_no_bundle(run) -> None:
    assert run("norm", 2, 8, 0, 0, embed=True) == run("norm", 2, 8, 0, 0)


def test_a_damaged_cubin_is_not_embedded(bundle: Bundle, tmp_path: Path) -> None:
    copy = write(tmp_path / "b", [Compiled(e.spec, CODE, {"sm_90": b"x"}) for e in bundle.entries], {})
    next((copy.root / "files").glob("*.cubin")).write_bytes(b"damaged")
    assert "Kernels" in header(copy, embed=False)
    with pytest.raises(BundleError):
        header(copy, embed=True)


def test_what_is_exported_is_chosen(tmp_path: Path, bundle: Bundle) -> None:
    spec = bundle.entries[0].spec
    both = {"sm_80": b"", "sm_90": b""}
    other = EntrySpec(spec.symbol, spec.op, "py", "f16")
    several = write(tmp_path / "b", [Compiled(spec, CODE, both), Compiled(other, CODE, both)], {})
    with pytest.raises(UsageError, match=r"the sources mlir, py\n  next: choose one with --source"):
        choose(several, None, "sm_80", (), ())
    with pytest.raises(UsageError, match=r"the targets sm_80, sm_90\n  next: choose one with --target"):
        choose(several, "py", None, (), ())
    with pytest.raises(UsageError, match="has no target sm_75"):
        choose(several, "py", "sm_75", (), ())
    with pytest.raises(UsageError, match="no cubin of py/linear for sm_80"):
        choose(several, "py", "sm_80", ("linear",), ())
    with pytest.raises(UsageError, match="no cubin of py for sm_80 with dtype f32"):
        choose(several, "py", "sm_80", (), ("f32",))
    assert [entry.spec.source for entry in choose(several, "py", "sm_80", ("gelu",), ("f16",))[2]] == ["py"]
    linear = EntrySpec("linear_f16", "linear", "cute", "f16", aligned=("x",))
    mapped = ptx("", block=(128, 1, 1), maps=(TensorMap("x", (64, 64), 128),))
    maps = write(tmp_path / "m", [Compiled(linear, mapped, both), Compiled(other, CODE, both)], {})
    with pytest.raises(UsageError, match="cute/linear_f16 takes tensor maps, which a header cannot make"):
        choose(maps, "cute", "sm_90", (), ())
    assert len(choose(maps, "py", "sm_90", (), ())[2]) == 1
    bytecode = write(tmp_path / "c", [Compiled(spec, CODE, {})], {})
    with pytest.raises(UsageError, match="bytecode only"):
        choose(bytecode, None, None, (), ())


def test_every_op_has_types_of_cpp() -> None:
    stored = {param.storage(dtype) for op in ops().values() for dtype in op.dtypes for param in op.params}
    assert stored - {"tf32"} <= set(TYPES)

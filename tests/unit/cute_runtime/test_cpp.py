"""The C++ library, built with all warnings as errors and run over a driver that prints what reaches it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from .conftest import HERE, Driver
from .tma_cases import CASES, Case

pytestmark = pytest.mark.needs("g++")
MAP = "5a" * 128  # what the stub writes as a TMA descriptor


@pytest.fixture(scope="module")
def run(build: Callable[..., Path], driver: Driver) -> Callable[..., list[str]]:
    """The lines that a case of cases.cpp prints."""
    program = build(HERE / "cases.cpp")
    return lambda *words, **settings: driver.run(program, *words, **settings).splitlines()


@pytest.mark.needs("clang")
def test_clang_builds_it_without_a_warning(build: Callable[..., Path], driver: Driver) -> None:
    assert "Stub sm_90" in driver.run(build(HERE / "cases.cpp", "clang++"), "device")


def test_the_device(run) -> None:
    assert run("device") == ["retain", "Stub sm_90 132 1048576", "release"]
    assert run("no_such_device")[0] == "Error 101: there is no GPU 7: the driver lists 1"


def test_a_machine_without_a_driver(build: Callable[..., Path], driver: Driver, tmp_path: Path) -> None:
    source = tmp_path / "alone.cpp"
    source.write_text(
        "#include <cute_runtime/driver.hpp>\n#include <cstdio>\nint main() try {\n"
        "  cute_runtime::driver();\n} catch (const cute_runtime::Error& error) { std::puts(error.what()); }\n"
    )
    program = build(source)
    (tmp_path / "libcuda.so.1").write_text("")  # found before a real one, and no library
    text = Driver(tmp_path).run(program)
    assert text.startswith("no NVIDIA driver on this machine: ") and "next: check that" in text
    assert "cuInit failed: status 2" in driver.run(program, STUB_FAILS="cuInit")


def test_architectures(run) -> None:
    assert run("arch") == [
        "sm_80 sm_80 on sm_89",
        "sm_90a sm_90a on sm_90",
        "sm_100f sm_100f on sm_100 on sm_103",
        "sm_103 sm_103 on sm_103",
        "sm_120 sm_120",
        *["refused"] * 8,
    ]


def test_a_buffer_is_moved_copied_and_freed_once(run) -> None:
    assert run("buffers") == [
        "retain", "alloc 12", "moved 0 0 3", "alloc 20", "free", "1 2 3 16843009", "free", "release",
        "Error 0: a copy between 2 elements on the host and 3 on the GPU: the numbers must be equal",
    ]  # fmt: skip


def test_an_allocation_without_room_says_how_much_was_asked_for(run) -> None:
    (error,) = (line for line in run("out_of_memory", STUB_FAILS="cuMemAlloc") if line.startswith("Error"))
    assert error == (
        "Error 2: cuMemAlloc failed while allocating 4194304 bytes on Stub: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory"
    )


def test_a_launch_passes_arrays_numbers_and_descriptors(run) -> None:
    lines = run("launch")
    array = "0000000000001230 00000002 00000003 00000003 00000001"
    form = "grid 4,2,1 block 128,1,1 shared 100000 attribute 6 cluster 2"
    assert [line for line in lines if line.startswith("launch")] == [
        f"launch scale {form} with {array} 3fc00000 {MAP} ffffffffffffffff",
        f"launch scale grid 1,1,1 block 32,1,1 shared 0 with {array} 3fc00000 {MAP} 0000000000000007",
    ]
    assert lines.count("shared memory up to 100000") == 1  # asked for once
    assert lines[-3:] == ["free", "unload", "release"]


@pytest.mark.parametrize(
    ("case", "says"),
    [
        ("wrong_count", "scale has 2 parameters, but was given 1"),
        ("wrong_size", "scale: parameter 1 has 4 bytes, but was given 8"),
        ("wrong_grid", "scale: a grid of 0 x 1 x 1: CUDA takes"),
        ("wrong_block", "scale: a block of 1024 x 2 x 1: it has 1 to 1024 threads"),
        ("wrong_cluster", "scale: clusters of 2 x 1 x 1 do not divide a grid of 3 x 1 x 1"),
        ("broken", "cuModuleLoadDataEx failed while loading scale on Stub, sm_90\nline 3: no such instruction"),
        ("absent", "cuModuleGetFunction failed while looking for the kernel absent"),
        ("no_file", "nowhere.cubin cannot be read"),
        ("gemm_of_nothing", "gemm: M=0, N=1, K=1: sizes must be positive"),
    ],
)
def test_what_does_not_fit_is_refused_before_a_launch(run, case: str, says: str) -> None:
    lines = run(case)
    assert says in "\n".join(lines)
    assert not any(line.startswith("launch") for line in lines)
    assert lines.count("retain") == lines.count("release") == 1


def test_arrays_of_a_buffer(run) -> None:
    lines = run("arrays")
    assert lines[2:4] == ["8 40 8 1 101", "0111"]
    assert lines[-1] == "Error 0: an array of 100 elements from element 4 on does not fit into a buffer of 100"


def test_gemm_with_pointers_and_with_descriptors(run) -> None:
    lines = run("gemm")
    plain, tma = (line for line in lines if line.startswith("launch"))
    sizes = "00000064 000000c8 00000040"
    assert re.fullmatch(rf"launch gemm grid 2,1,1 block 128,1,1 shared 0 with( \w{{16}}){{3}} {sizes}", plain)
    assert re.fullmatch(rf"launch gemm grid 2,1,1 block 128,1,1 shared 65536 with {MAP} {MAP} \w{{16}} {sizes}", tma)
    first, second = sorted((line for line in lines if line.startswith("encode")), key=lambda line: "64 100" not in line)
    assert first == "encode type 6 rank 2 sizes 64 100 strides 128 box 32/1 128/1 interleave 0 swizzle 2 l2 2 fill 0"
    assert second == "encode type 6 rank 2 sizes 200 64 strides 400 box 128/1 32/1 interleave 0 swizzle 0 l2 2 fill 0"
    assert lines[-1] == "Error 0: gemm: A has 12800 elements, but M=100, N=200, K=64 needs 6400"


def test_half_and_bfloat16_round_as_numpy(run) -> None:
    edges = [0x387FE000, 0x387FF000, 0x33000000, 0x33000001, 0x477FEFFF, 0x477FF000, 0x7F7FFFFF, 0x7F800000, 0, 1 << 31]
    rng = np.random.default_rng(0)
    halves = rng.uniform(-70000, 70000, 500).astype(np.float32).view(np.uint32)
    small = (rng.uniform(-1, 1, 500) * 2.0**-14).astype(np.float32).view(np.uint32)
    bits = np.concatenate([np.array(edges, np.uint32), halves, small, rng.integers(0, 0x7F800000, 500, np.uint32)])
    wrong, *lines = run("conversions", stdin=" ".join(map(str, bits)))
    found = np.array([line.split() for line in lines], np.uint32)
    values = bits.view(np.float32)
    with np.errstate(over="ignore"):
        halved = values.astype(np.float16)
        assert np.array_equal(found[:, 1], values.astype(ml_dtypes.bfloat16).view(np.uint16))
    assert wrong == "0"
    assert np.array_equal(found[:, 0], halved.view(np.uint16))
    assert np.array_equal(found[:, 2], halved.astype(np.float32).view(np.uint32))


TYPES, SWIZZLES = {"f32": 7, "f16": 6, "u8": 0}, {0: 0, 32: 1, 128: 3}  # the numbers of cuda.h


@pytest.mark.parametrize("case", CASES, ids=[case.says or "fits" for case in CASES])
def test_a_descriptor_that_the_copy_engine_cannot_use_is_refused(run, case: Case) -> None:
    lists = (",".join(map(str, numbers)) for numbers in (case.sizes, case.strides, case.box, case.element_strides))
    fill = str(int(case.fill == "nan"))
    text = "\n".join(run("tma", str(TYPES[case.dtype]), str(case.address), *lists, str(SWIZZLES[case.swizzle]), fill))
    assert case.says in text
    assert text.startswith("Error 0: TMADescriptor: " if case.says else "encode type")

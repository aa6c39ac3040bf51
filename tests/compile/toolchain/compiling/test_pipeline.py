"""The pipeline with the real assembler, on entries of both kernel sources."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest

from toolchain.bundles.bundle import write
from toolchain.caching.cache import Cache
from toolchain.compiling import pipeline, stages
from toolchain.compiling.cubin import inspect
from toolchain.compiling.pipeline import Outcome, assemble, compile_entries
from toolchain.contract.entry import EntrySpec
from toolchain.contract.sources import load_source
from toolchain.contract.targets import select
from toolchain.errors import ToolFailed
from toolchain.pinned.tools import tool

pytestmark = pytest.mark.needs("toolchain")


def entries(symbol: str, *modules: str) -> list[tuple[str, EntrySpec]]:
    return [(m, spec) for m in modules for spec in load_source(m).entries() if spec.symbol == symbol]


def compiled(cache: Path, *targets: str, modules: tuple[str, ...] = ("kernels_mlir", "kernels_py")) -> Outcome:
    found = entries("gelu_1024_f32", *modules)
    assert len(found) == len(modules)
    return compile_entries(found, select(targets), Cache(cache), jobs=2)


def test_both_sources_compile_and_then_come_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = compiled(tmp_path, "sm_80", "sm_90")
    assert (first.made, first.cached, first.failures) == (6, 0, [])
    for entry in first.compiled:
        assert set(entry.cubins) == {"sm_80", "sm_90"}
        for cubin in entry.cubins.values():
            assert [usage.symbol for usage in inspect(cubin)] == ["gelu_1024_f32"]
            assert str(Path.cwd()).encode() not in cubin and b"/tmp" not in cubin
    monkeypatch.setattr(pipeline.LazyPool, "submit", lambda *_: pytest.fail("a compile was started"))
    again = compiled(tmp_path, "sm_80", "sm_90")
    assert (again.made, again.cached, again.compiled) == (0, 6, first.compiled)


@pytest.mark.parametrize("kind", [ProcessPoolExecutor, ThreadPoolExecutor])
def test_nothing_runs_behind_a_pool_that_an_interrupt_ends(
    kind: type[ProcessPoolExecutor] | type[ThreadPoolExecutor],
) -> None:
    before = set(threading.enumerate())
    with contextlib.suppress(KeyboardInterrupt), pipeline.LazyPool(kind, 1) as pool:
        pool.submit(time.sleep, 0.1)
        raise KeyboardInterrupt
    assert set(threading.enumerate()) <= before


def test_two_caches_give_the_same_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifests: list[bytes] = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        monkeypatch.setenv("TMPDIR", str(tmp_path / name))
        outcome = compiled(tmp_path / name / "cache", "sm_80", modules=("kernels_mlir",))
        bundle = write(tmp_path / name / "bundle", outcome.compiled, {})
        manifests.append((bundle.root / "manifest.json").read_bytes())
    assert manifests[0] == manifests[1]


def test_the_cubin_depends_on_tool_target_and_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def made() -> int:
        return compiled(tmp_path, "sm_80", modules=("kernels_mlir",)).made

    assert made() == 2
    assert made() == 0
    monkeypatch.setattr(stages, "OPTIONS", ("--opt-level=2",))
    assert made() == 1
    monkeypatch.setattr(stages, "pinned_fingerprint", lambda _: "another build")
    assert made() == 1
    assert made() == 0


def test_a_refused_module_keeps_the_command_and_what_was_said() -> None:
    with pytest.raises(ToolFailed) as caught:
        assemble(b"\x7fTileIR\x00 and no more", "sm_80")
    error = caught.value
    assert error.command[1:3] == ["--gpu-name=sm_80", "--opt-level=3"] and error.returncode
    assert len(error.command) == 5 and error.command[3].startswith("--output-file=")  # no option that leaks a path
    assert error.stderr.strip() and error.stderr.strip() in str(error)
    assert error.version == f"tileiras {tool('tileiras').version}"


def test_a_cell_that_does_not_assemble_is_reported_and_the_rest_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def picky(bytecode: bytes, target: str) -> bytes:
        return assemble(bytecode if target == "sm_80" else bytecode[:100], target)

    monkeypatch.setattr(stages, "STAGES", {"tile-ir": stages.Stage(("tileiras",), picky)})
    outcome = compiled(tmp_path, "sm_80", "sm_120", modules=("kernels_mlir",))
    (failure,) = outcome.failures
    assert failure.cell == "gelu-mlir-f32-sm_120 (gelu_1024_f32)" and isinstance(failure.error, ToolFailed)
    assert (outcome.made, outcome.compiled) == (2, [])


@pytest.mark.parametrize(
    ("symbol", "tensor_core", "copy_engine"),
    [
        ("linear_128x128x64_bf16", {"HGMMA"}, {"UTMALDG", "UTMASTG"}),
        ("logits_any_bf16", {"HMMA"}, set()),  # has instructions predicated by what is always true
    ],
)
def test_the_count_of_instructions_is_that_of_the_disassembly(
    tmp_path: Path, symbol: str, tensor_core: set[str], copy_engine: set[str]
) -> None:
    ((module, spec),) = entries(symbol, "kernels_mlir")
    cubin = assemble(load_source(module).bytecode(spec), "sm_90")
    (usage,) = inspect(cubin)
    assert (set(usage.tensor_core), set(usage.copy_engine)) == (tensor_core, copy_engine)
    (tmp_path / "k.cubin").write_bytes(cubin)
    lines = tool("nvdisasm").run(["--print-code", str(tmp_path / "k.cubin")]).stdout.splitlines()
    assert usage.instructions == sum(line.lstrip().startswith("/*") and line.rstrip().endswith(";") for line in lines)


def _compile(cache: Path, *, again: bool = False) -> None:
    os.chdir("/")
    outcome = compiled(cache, "sm_80", modules=("kernels_mlir",))
    assert outcome.failures == []
    assert not again or outcome.made == 0
    write(cache.parent / "bundle", outcome.compiled, {})


def test_two_processes_may_compile_to_one_cache_and_one_bundle(tmp_path: Path) -> None:
    """The third finds all that these made. It is a new process as well: this one has read the compiler's files when its
    first test wanted a fingerprint, and they may have been edited since."""
    context = multiprocessing.get_context("spawn")
    both = [context.Process(target=_compile, args=(tmp_path / "cache",)) for _ in range(2)]
    third = context.Process(target=_compile, args=(tmp_path / "cache",), kwargs={"again": True})
    for process in both:
        process.start()
    for process in both:
        process.join()
    third.start()
    third.join()
    assert [process.exitcode for process in (*both, third)] == [0, 0, 0]


def test_a_script_that_compiles_needs_no_guard(tmp_path: Path) -> None:
    """The processes of a compile do not run the caller's script again."""
    script = tmp_path / "script.py"
    script.write_text(
        "print('once')\n"
        "from pathlib import Path\n"
        "from toolchain.compiling import pipeline\n"
        "from toolchain.caching.cache import Cache\n"
        "from toolchain.contract.sources import load_source\n"
        "spec = next(s for s in load_source('kernels_mlir').entries() if s.symbol == 'gelu_any_f32')\n"
        f"cache = Cache(Path({str(tmp_path / 'cache')!r}))\n"
        "made = pipeline.compile_entries([('kernels_mlir', spec)], [], cache, jobs=1)\n"
        "print(made.made, made.failures)\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert done.stdout == "once\n1 []\n"

"""The whole command `gpu` at tiny sizes, on the interpreter and PyTorch's CPU: without streams, graphs and clocks."""

from __future__ import annotations

import importlib
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.cases.cases import Case, DecodeCase, ForwardCase, OpCase
from benchmarks.cases.options import Options
from benchmarks.cases.roofline import Ceilings
from benchmarks.report.result import Results
from benchmarks.report.table import table
from toolchain.bundles import checkout as checkouts
from toolchain.bundles.bundle import Bundle, Compiled, write
from toolchain.errors import ConformanceError
from toolchain.runtime import open_executor

pytestmark = pytest.mark.needs("torch")

OPS = (
    OpCase("linear", {"M": 64, "K": 64, "N": 128}),
    OpCase("linear_gelu", {"M": 64, "K": 64, "N": 128}),
    OpCase("linear_residual", {"M": 64, "K": 64, "N": 128}),
    OpCase("logits", {"M": 16, "C": 64, "V": 257}),
    OpCase("attention", {"B": 2, "T": 64, "S": 64, "H": 2, "D": 32}),
    OpCase("attention", {"B": 1, "T": 64, "S": 64, "H": 2, "D": 64}),
    OpCase("decode_attention", {"B": 2, "P": 300, "H": 2, "D": 64}),
    OpCase("layernorm", {"N": 64, "C": 64}),
    OpCase("embedding", {"N": 64, "V": 257, "P": 16, "C": 64}),
    OpCase("softmax", {"M": 8, "N": 257}),
    OpCase("gelu", {"M": 8, "N": 256}),
    OpCase("gelu", {"M": 8, "N": 256}, "f32"),
)
MODELS = (
    ForwardCase("nano", 2, 16),
    ForwardCase("nano", 1, 100),
    ForwardCase("nano", 1, 16, group="scaling", axis="T", compiled=False),
    DecodeCase("nano", 2, 32),
    DecodeCase("nano", 1, 128),
)
LLAMAS = (
    ForwardCase("nano-llama", 2, 16, group="llama"),
    ForwardCase("nano-llama", 1, 100, group="llama", compiled=False),
    DecodeCase("nano-llama", 2, 32, group="llama"),
    DecodeCase("nano-llama", 1, 128, group="llama", compiled=False),
)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    source = importlib.import_module("kernels_mlir").SOURCE
    wanted = [spec for spec in source.entries() if spec.dtype in ("bf16", "f32")]
    compiled = [Compiled(spec, source.artifact(spec), {}) for spec in wanted]
    return write(tmp_path_factory.mktemp("benchmarks") / "bundle", compiled, {})


@pytest.fixture
def rig(bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    from benchmarks.harness import decode, forward, kernels, models, rig
    from benchmarks.harness import ops as op_bench
    from benchmarks.peers import torch_side

    for module in (models, forward, decode):
        monkeypatch.setattr(module, "BACKENDS", ("flash", "math"))  # a CPU has no cudnn
    monkeypatch.setattr(op_bench, "SAMPLE_US", 1.0)
    side = torch_side.TorchSide("cpu", flush_bytes=1024)
    side.l2_bytes = 200_000  # so that some cases have several sets
    options = Options(bundle.root, tmp_path, samples=2, peers=("eager", "graph"))
    executor = open_executor("cpu", sanitize=False)
    return rig.open_rig(
        executor, kernels.choose(bundle, {}, ["mlir"]), side, Ceilings(1e10, 1e11), options, lambda _: None
    )


def run(rig: Any, cases: list[Case], tmp_path: Path, at_least: float = 0) -> tuple[int, Results]:
    from benchmarks import gpu

    options = Options(rig.kernels[0].bundle.root, tmp_path, at_least=at_least)
    code = gpu.measure_all(rig, cases, Results({"gpu": "none"}, {}, []), options, "0")
    return code, Results.load(tmp_path / "none.json")


@pytest.mark.parametrize("case", OPS, ids=lambda case: case.name)
def test_ops(rig: Any, case: OpCase, tmp_path: Path) -> None:
    code, results = run(rig, [case], tmp_path)
    assert code == 0, [row.detail for row in results.rows]
    right = [row for row in results.rows if row.status == "ok"]
    assert right
    assert sum(row.best for row in right) == 1
    for row in right:
        assert row.entry.startswith(case.op)
        assert row.ratio
        assert row.ours_error
        assert row.ours_error["frobenius"] < row.ours_error["frobenius_bound"]
    moves = case.op in ("layernorm", "embedding", "softmax", "gelu")
    assert {row.copy_ms is not None for row in results.rows} == {moves}
    assert {row.status for row in results.rows} <= {"ok", "error"}  # some backends need a GPU; none is wrong
    assert all(
        any(name in row.peer for name in ("cudnn", "efficient", "CuPy")) for row in results.rows if row not in right
    )


@pytest.mark.parametrize("case", MODELS, ids=lambda case: case.name)
def test_models(rig: Any, case: Case, tmp_path: Path) -> None:
    code, results = run(rig, [case], tmp_path)
    assert code == 0, [row.detail for row in results.rows]
    assert {row.peer for row in results.rows if row.status == "error"} <= {"graph, efficient"}
    assert [row.best for row in results.rows].count(True) == 1


@pytest.mark.needs("transformers")
@pytest.mark.parametrize("case", LLAMAS, ids=lambda case: case.name)
def test_llamas(rig: Any, case: Case, tmp_path: Path) -> None:
    code, results = run(rig, [case], tmp_path)
    assert code == 0, [row.detail for row in results.rows]
    assert {row.status for row in results.rows} == {"ok"}
    ways = {"graph, flash", "graph, math", "graph, masked"}
    if isinstance(case, ForwardCase):
        ways |= {row.peer.removeprefix("transformers, ") for row in results.rows if "eager" in row.peer}
        assert len(ways) == 4
    assert {row.peer for row in results.rows} == {f"transformers, {way}" for way in ways}


@pytest.mark.needs("transformers")
def test_a_llama_is_compiled_where_the_case_says_so(rig: Any) -> None:
    from benchmarks.harness import decode, forward, models

    every = replace(rig, peers=("compile",), kernels=())
    zoo = models.Zoo(every)
    for bench, cases in ((forward.ForwardBench, LLAMAS[:2]), (decode.DecodeBench, LLAMAS[2:])):
        found = [bench(every, zoo.get(case.config, case.dtype), case).makers() for case in cases]
        assert all(maker.name.startswith("transformers, torch.compile ") for maker in found[0])
        assert bool(found[0]) and not found[1]


@pytest.mark.needs("transformers")
def test_a_wrong_llama_is_found(rig: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys and queries that nobody turned."""
    from gpt.families import llama

    monkeypatch.setattr(llama, "table", lambda config, at: (np.ones((len(at), config.head_size // 2)),
                                                            np.zeros((len(at), config.head_size // 2))))  # fmt: skip
    code, results = run(rig, [LLAMAS[0], LLAMAS[2]], tmp_path)
    assert code == ConformanceError.exit_code
    assert {row.status for row in results.rows} == {"wrong"}
    assert all("mlir: " in row.detail for row in results.rows)


def test_without_transformers_a_llama_is_not_run(rig: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the other cases are."""
    from benchmarks.peers import torch_llama

    monkeypatch.setitem(sys.modules, "transformers", None)
    monkeypatch.setattr(torch_llama, "transformers", torch_llama.transformers.__wrapped__)  # without its cache
    code, results = run(rig, [LLAMAS[0], LLAMAS[2], OPS[7]], tmp_path)
    assert code == 1
    first, second, *others = results.rows
    for row in (first, second):
        assert (row.source, row.status) == ("mlir", "error")
        assert "not run: transformers missing" in row.detail
    assert {row.status for row in others} == {"ok"}
    assert "not run: transformers missing" in table(results)


def test_a_wrong_kernel_is_found_and_the_run_goes_on(rig: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that leaves its output as it was, and one that is a little off."""
    from toolchain.runtime import Launcher

    call = Launcher.__call__

    def broken(self: Launcher, op: str, dtype: str, /, **args: Any) -> None:
        if op == "softmax":
            return
        call(self, op, dtype, **args)
        if op == "gelu":
            args["out"].slice(0, 7, 8).fill(1.0)

    monkeypatch.setattr(Launcher, "__call__", broken)
    code, results = run(rig, [OPS[9], OPS[10], OPS[7]], tmp_path)
    assert code == ConformanceError.exit_code
    by_case = {row.case: row for row in results.rows}
    assert [row.status for row in by_case.values()] == ["wrong", "wrong", "ok"]
    assert "not finite or not written" in by_case[OPS[9].name].detail
    assert by_case[OPS[10].name].ratio is None


def test_a_peer_that_leaves_its_output_as_it_was_is_wrong(
    rig: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its outputs are always at the same address, as with a compiler's own graphs, and hold the results of the
    warm-up."""
    from benchmarks.harness import ops
    from benchmarks.peers import torch_op_peers

    kept: dict[int, Any] = {}

    def lazy(args: Any) -> Any:
        return kept.setdefault(args["x"].data_ptr(), gelu(args["x"], approximate="tanh"))

    gelu = torch_op_peers.functional.gelu
    monkeypatch.setattr(ops, "op_peers", lambda _: [torch_op_peers.OpPeer("lazy", "eager", lazy)])
    code, results = run(rig, [OPS[10]], tmp_path)
    assert code == ConformanceError.exit_code
    (row,) = results.rows
    assert (row.status, row.ratio) == ("wrong", None)
    assert "not finite or not written" in row.detail


def test_a_wrong_forward_and_decode_are_found(rig: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GELU left out of the MLP."""
    from toolchain.runtime import Launcher

    call = Launcher.__call__

    def broken(self: Launcher, op: str, dtype: str, /, **args: Any) -> None:
        call(self, "linear" if op == "linear_gelu" else op, dtype, **args)

    monkeypatch.setattr(Launcher, "__call__", broken)
    code, results = run(rig, [MODELS[0], MODELS[3]], tmp_path)
    assert code == ConformanceError.exit_code
    assert all(row.status in ("wrong", "error") and row.ratio is None for row in results.rows)
    assert all(": logits: " in row.detail for row in results.rows if row.status == "wrong")


def test_a_case_that_cannot_be_set_up_is_a_row(rig: Any, tmp_path: Path) -> None:
    code, results = run(rig, [OpCase("linear", {"M": 4, "K": 8}), OPS[7]], tmp_path)
    assert code == 1
    assert results.rows[0].status == "error"
    assert results.rows[-1].status == "ok"


def test_a_run_that_is_over_before_its_first_case_wrote_nothing(
    rig: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from benchmarks import gpu

    options = Options(rig.kernels[0].bundle.root, tmp_path, stop_after_s=1e-9)
    assert gpu.measure_all(rig, [OPS[7]], Results({"gpu": "none"}, {}, []), options, "0") == 0
    said = capsys.readouterr().out
    assert "1 of 1 cases are not measured" in said
    assert "wrote" not in said


@pytest.mark.parametrize("case", [OPS[10], MODELS[0], MODELS[3]], ids=lambda case: case.name)
def test_two_bundles_take_turns(rig: Any, case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from benchmarks.harness.kernels import choose

    bundle = rig.kernels[0].bundle
    both = replace(rig, kernels=choose(bundle, {"old": bundle}, ["mlir"]), peers=())
    code, results = run(both, [case], tmp_path, at_least=1e-9)
    (row,) = results.rows
    assert (code, row.source, row.peer, row.peer_kind, row.status) == (0, "mlir", "old mlir", "against", "ok")
    assert row.ratio
    assert row.peer_error == row.ours_error
    code, _ = run(both, [case], tmp_path, at_least=1e9)
    assert code == 1
    assert f"not 1e+09 times as fast as old mlir: {case.name}" in capsys.readouterr().out


def test_no_peers_leave_ours_alone(rig: Any, tmp_path: Path) -> None:
    _, results = run(replace(rig, peers=()), [OPS[7]], tmp_path)
    assert [(row.peer, row.status) for row in results.rows] == [("", "ok")]


def test_every_process_of_a_run_is_told_what_tree_it_is_of(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise each would ask git itself, and find the files that the others wrote."""
    from benchmarks import gpu
    from benchmarks.harness import apart

    told: list[Options] = []
    monkeypatch.setattr(gpu.driver, "load", lambda: None)
    monkeypatch.setattr(apart, "run", lambda options, _: told.append(options) or 0)
    options = Options(bundle.root, Path("unused"), only=("forward", "ops"), peers=("compile",))
    gpu.run(options)
    gpu.run(replace(options, tree={"commit": "of the first process"}))
    assert [one.tree for one in told] == [checkouts.commit(bundle.root), {"commit": "of the first process"}]


def test_a_model_is_kept_for_each_source_and_way_of_norms(rig: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.harness import forward, models

    made: list[dict[str, Any]] = []

    class Fake:
        def __init__(self, *_: Any, **also: Any) -> None:
            made.append(also)

    def forward_of(model: Any, *_: Any) -> Any:
        asked.append(model)
        raise RuntimeError("far enough")

    asked: list[Any] = []
    monkeypatch.setattr(models, "GPT", Fake)
    monkeypatch.setattr("gpt.graphs.Forward", forward_of)
    zoo = models.Zoo(rig)
    for folded in (None, True, False, True):
        case = ForwardCase("nano", 1, 16, folded=folded)
        forward.measure(rig, zoo.get(case.config, case.dtype), case)
    assert made == [{"folded": None}, {"folded": True}, {"folded": False}]
    assert asked[1] is asked[3]
    assert len(set(map(id, asked))) == 3

"""What changed files reach."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ci.matrix import STAGES, Matrix
from ci.plan.graph import EVERY, Graph, Reach, changed_since, union
from toolchain.errors import UsageError

GPU = {"conformance", "model", "gate"}


@pytest.mark.parametrize(
    ("path", "stages"),
    [
        ("README.md", set()), ("docs/ci.md", set()), ("ci/site/compilation.md.j2", set()),
        ("tests/gpu/any.py", set()), ("ci/report/__init__.py", {"interpret", "conformance", "model"}),
        ("toolchain/caching/cache.py", {"compile"}), ("toolchain/tileir/passes/overlap.py", {"compile"}),
        ("toolchain/tileir/bytecode/writer.py", {"compile"}), ("toolchain/runtime/cuda.py", GPU),
        ("gpt/model.py", {"model", "gate"}), ("benchmarks/gpu.py", {"gate"}), ("ci/gate.toml", {"gate"}),
        ("conformance/tolerances.toml", {"interpret", "conformance", "model"}),
        ("conformance/matrix.py", {"conformance"}), ("toolchain/tileir/interpreter/__init__.py", {"interpret"}),
    ],
)  # fmt: skip
def test_a_file_reaches_the_stages_that_import_it(path: str, stages: set[str], graph: Graph) -> None:
    reached = graph.reach(path).stages
    assert stages <= reached
    assert stages or not reached


@pytest.mark.parametrize(("path", "spared"), [("gpt/model.py", "conformance"), ("conformance/matrix.py", "compile")])
def test_a_file_spares_the_stages_that_do_not_import_it(path: str, spared: str, graph: Graph) -> None:
    assert spared not in graph.reach(path).stages


@pytest.mark.parametrize(
    "path", ["requirements.lock", "toolchain/contract/ops.toml", "toolchain/gone.py", "entries/portable.toml",
             "no idea",
             "kernels_mlir/gone.mlir", "kernels_py/gone.py", "entries/sm_1.toml",
             "tilestack/cli/matrix.py", "tilestack/cli/compile.py", "tilestack/__main__.py", "ci/bundles.py"],
)  # fmt: skip
def test_a_file_that_nothing_is_known_of_reaches_everything(path: str, graph: Graph) -> None:
    reach = graph.reach(path)
    assert reach.stages == set(STAGES) and not reach.narrow and reach.target == EVERY


def test_a_kernel_reaches_its_own_ops(graph: Graph) -> None:
    assert graph.reach("kernels_mlir/gelu.mlir").ops == {"mlir": {"gelu"}}
    assert graph.reach("kernels_py/gelu.py").ops == {"py": {"gelu"}}
    assert {"linear", "layernorm"} <= graph.reach("kernels_cute/layernorm.py").ops["cute"]


def test_a_fragment_reaches_the_ops_of_every_kernel_that_uses_it(graph: Graph) -> None:
    products = graph.reach("kernels_mlir/products.mlir").ops["mlir"]
    assert {"linear", "linear_gelu", "gelu", "logits"} <= products
    assert not {"attention", "layernorm", "softmax"} & products


def test_a_function_reaches_the_ops_of_the_modules_that_import_it(graph: Graph) -> None:
    products = graph.reach("kernels_py/products.py").ops["py"]
    assert {"linear", "linear_gelu", "gelu", "logits"} <= products
    assert "softmax" not in products


def test_the_entries_of_a_target_reach_that_target_alone(graph: Graph) -> None:
    assert graph.reach("entries/sm_90.toml").target == "sm_90"


def test_compiling_reaches_what_comes_after() -> None:
    assert union([Reach("a", "", frozenset({"compile"}))]) == set(STAGES)
    assert union([Reach("a", "", frozenset({"gate"})), Reach("b", "", frozenset())]) == {"gate"}


def test_a_stage_of_a_module_that_is_gone_is_an_error(matrix: Matrix) -> None:
    wrong = replace(matrix, modules={**matrix.modules, "gate": ["ci.gone"]})
    with pytest.raises(UsageError, match=r"no module ci\.gone"):
        Graph(wrong)


def git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=x", "-c", "user.email=x@x", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


def test_what_changed_since_a_commit_is_committed_or_not(tmp_path: Path) -> None:
    git(tmp_path, "init", "-b", "main")
    for name in ("kept", "committed", "edited", "moved"):
        (tmp_path / name).write_text(name)
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "first")
    git(tmp_path, "checkout", "-b", "change")
    (tmp_path / "committed").write_text("new")
    git(tmp_path, "mv", "moved", "to here")
    git(tmp_path, "commit", "-am", "second")
    (tmp_path / "edited").write_text("new")
    (tmp_path / "ünknown").write_text("new")
    git(tmp_path, "checkout", "main")
    (tmp_path / "kept").write_text("of main")
    git(tmp_path, "stash")
    git(tmp_path, "checkout", "change")
    assert changed_since("main", tmp_path) == ["committed", "moved", "to here", "ünknown"]


def test_an_unknown_commit_is_an_error(tmp_path: Path) -> None:
    git(tmp_path, "init")
    with pytest.raises(UsageError, match="gone") as said:
        changed_since("gone", tmp_path)
    assert "fetch" in str(said.value)

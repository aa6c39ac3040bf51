"""What changed files reach."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ci.matrix import STAGES, Matrix
from ci.plan.graph import EVERY, Graph, Reach, union
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
    assert graph.reach("kernels_py/rows/gelu.py").ops == {"py": {"gelu"}}
    for file in ("kernels_cute/layernorm.py", "kernels_cute/products/linear.py"):
        assert {"linear", "layernorm"} <= graph.reach(file).ops["cute"]


def test_a_fragment_reaches_the_ops_of_every_kernel_that_uses_it(graph: Graph) -> None:
    products = graph.reach("kernels_mlir/products.mlir").ops["mlir"]
    assert {"linear", "linear_gelu", "gelu", "logits"} <= products
    assert not {"attention", "layernorm", "softmax"} & products


def test_a_function_reaches_the_ops_of_the_modules_that_import_it(graph: Graph) -> None:
    products = graph.reach("kernels_py/products/products.py").ops["py"]
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


def test_a_package_whose_folder_was_renamed_is_named(matrix: Matrix, tmp_path: Path) -> None:
    """It may be installed as well, and its code of there is not what is planned."""
    (tmp_path / "pyproject.toml").write_text('[tool.importlinter]\nroot_packages = ["ci", "kernels_py"]\n')
    (tmp_path / "ci").mkdir()
    with pytest.raises(UsageError, match=r"importlinter names kernels_py, .* has no such folder"):
        Graph(matrix, tmp_path)


def test_a_renamed_module_reaches_what_its_new_name_reaches(graph: Graph) -> None:
    new = "ci/gate/verdict.py"
    found = graph.reach("ci/gate/judgement.py", new)
    assert (found.path, found.stages, found.why) == ("ci/gate/judgement.py", {"gate"}, f"it is {new} now")
    assert graph.reach("ci/gate/judgement.py").stages == set(STAGES)
    assert graph.reach("ci/gate/judgement.py").why == "nothing is known of this file, which is not here any more"


def test_another_renamed_file_reaches_what_its_old_name_reaches(graph: Graph) -> None:
    found = graph.reach("docs/old/gate.md", "handbook/gate.md")
    assert not found.stages
    assert found.why == "it is handbook/gate.md now, and by its old name: a file that ci/matrix.toml lists"
    assert graph.reach("kernels_mlir/old.mlir", "docs/old.mlir").stages == set(STAGES)

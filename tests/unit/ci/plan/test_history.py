"""What the last commits would have run."""

from __future__ import annotations

import subprocess
from pathlib import Path

from ci.matrix import Matrix
from ci.plan.graph import Graph
from ci.plan.history import changed, markdown, planned

COMMITS = {
    "a1": ["docs/ci.md"],
    "b2": ["kernels_mlir/gelu.mlir", "docs/ci.md"],
    "c3": ["noxfile.py", "kernels_mlir/gelu.mlir"],
    "d4": ["gone.bin"],
    "e5": ["ci/gate.toml"],
}


def test_each_commit_has_its_kind_and_what_fell_through(matrix: Matrix, graph: Graph) -> None:
    rows = {row.commit: row for row in planned(matrix, graph, COMMITS)}
    kinds = {commit: row.kind for commit, row in rows.items()}
    assert kinds == {
        "a1": "nothing: no bundle, no GPU", "b2": "some ops", "c3": "everything", "d4": "everything",
        "e5": "some stages, every op",
    }  # fmt: skip
    assert {commit: [r.path for r in row.fell] for commit, row in rows.items() if row.fell} == {
        "c3": ["noxfile.py"],
        "d4": ["gone.bin"],
    }
    assert not rows["a1"].made.minutes("gpu") and rows["b2"].made.minutes("gpu") > 0


def test_the_table_counts_commits_and_names_the_paths_that_are_there(matrix: Matrix, graph: Graph) -> None:
    text = "\n".join(markdown(planned(matrix, graph, COMMITS)))
    assert "| everything | 2 | " in text and "| some ops | 1 | " in text and "5 commits, " in text
    assert "2 commits have a path that fell through to everything; of 1 it is the only reason. 1 such" in text
    assert "| `noxfile.py` | 1 | nothing is known of this file |" in text and "gone.bin" not in text


def test_the_paths_of_each_commit_are_read_from_git(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True)

    git("init", "-q")
    for names in (["one"], ["a file", "folder/two"]):
        for name in names:
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(name)
        git("add", ".")
        git("commit", "-q", "-m", "commit of files")
    assert [sorted(paths) for paths in changed(5, tmp_path).values()] == [["a file", "folder/two"], ["one"]]
    assert len(changed(1, tmp_path)) == 1

"""The page of all results is what the files say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.report.result import Results
from ci.site import results as site
from ci.site.results import FOLDER, PAGE, page


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page(), "write it anew: python -m ci.site --generate"


def test_every_case_with_a_time_is_in_it() -> None:
    text = page()
    for path in FOLDER.glob("nvidia-*.json"):
        for row in Results.load(path).rows:
            assert f"| {row.case} | {row.source} |" in text


def test_a_case_that_was_not_run_has_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the cases of a Llama are where transformers is missing."""
    measured = Results.load(FOLDER / "nvidia-h200.json")
    no: dict[str, Any] = dict.fromkeys(("ours_ms", "ours_low", "ours_high", "peer_ms", "ratio"))
    lost = replace(
        measured.rows[0], **no, group="llama", case="llama smollm2 B=1 T=64 bf16", status="error", peer="", best=False,
        detail="mlir: ToolchainError: not run: transformers missing",
    )  # fmt: skip
    replace(measured, rows=[measured.rows[0], lost]).save(tmp_path / "nvidia-h200-llama.json")
    monkeypatch.setattr(site, "FOLDER", tmp_path)
    text = page()
    assert "### llama, nvidia-h200-llama" in text
    assert "| llama smollm2 B=1 T=64 bf16 | mlir | error |  |  |  |  |" in text


@pytest.mark.parametrize(
    ("changes", "kernels", "words"),
    [
        ("", "", "commit `1111111`"),
        ("", "1111111a", "commit `1111111`"),
        ("", "2222222b", "kernels of commit `2222222`, launched from commit `1111111`"),
        ("c4", "", "commit `1111111` with changes"),
        ("c4", "1111111a", "kernels of commit `1111111`, launched from commit `1111111` with changes"),
    ],
)
def test_the_page_names_the_kernels_and_the_tree_that_launched_them(
    changes: str, kernels: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = Results.load(FOLDER / "nvidia-h200.json")
    where = {**measured.environment, "commit": "1111111a", "changes": changes, "bundle_commit": kernels}
    replace(measured, rows=measured.rows[:1], environment=where).save(tmp_path / "nvidia-h200.json")
    monkeypatch.setattr(site, "FOLDER", tmp_path)
    assert f", {words}, first measured" in page()

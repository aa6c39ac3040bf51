"""Scripts inside workflows are found, and shellcheck is run over them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci import scripts

WORKFLOW = """\
jobs:
  first:
    steps:
      - name: Greet
        run: echo $NAME
  called:
    uses: ./other.yml
"""


def test_every_block_has_a_name_that_says_where_it_stands(tmp_path: Path) -> None:
    (tmp_path / "one.yml").write_text(WORKFLOW)
    (script,) = scripts.scripts(tmp_path)
    assert (script.name, script.text) == ("one.yml: first: Greet", "echo $NAME")


@pytest.mark.needs("toolchain")
@pytest.mark.parametrize(("text", "code", "said"), [("echo $NAME", 1, "SC2086"), ('echo "$NAME"', 0, "1 scripts")])
def test_a_word_that_would_split_is_found(
    text: str, code: int, said: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(scripts, "scripts", lambda: [scripts.Script("one.yml", "first", "Greet", text)])
    assert scripts.main() == code
    assert said in capfd.readouterr().out

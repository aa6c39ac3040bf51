"""The page: one file that loads nothing; what a click on a night shows."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from ci.trends.nights import Night
from ci.trends.page import data, render
from tests.unit.ci.report.test_html import LISTEN
from toolchain.knobs import ROOT

from .synthetic import H100, H200, commit


def test_a_page_is_one_file_that_loads_nothing(ten: list[Night]) -> None:
    page = render(ten, ROOT, "https://example.org/r/")
    assert "default-src 'none'" in page and page.count("</script>") == 3
    assert not re.search(r"""(?:src|href)=["'](?!#|\$|\{)""", page)
    assert "@import" not in page and "fetch(" not in page and "url(" not in page


def test_the_data_marks_drivers_and_tools_and_the_gpus_stand_beside_each_other(ten: list[Night]) -> None:
    made = data(ten, ROOT, "https://example.org/r/")
    assert [machine["name"] for machine in made["machines"]] == [H100, H200]
    tools = "tileiras 13.4.92 to 13.5.37, ptxas 13.4.92 to 13.5.37"
    assert made["machines"][0]["marks"] == [[2, tools]]
    assert made["machines"][1]["marks"] == [[2, tools], [7, "driver 580.159.04 to 590.44.01"]]
    assert made["nights"][0]["commits"] == [] and made["nights"][1]["commits"] is None  # made-up commits
    (cell,) = (each for each in made["cells"] if (each["name"], each["source"]) == ("gelu bf16 M=1024 N=1024", "py"))
    h100, h200 = cell["points"]
    assert [point[0] for point in h100] == [0, 1, 2, 3, 4, 6, 7, 8, 9] and len(h200) == 10
    assert [point[4] for point in h200] == [None, 1, 0, 1, 1, 1, 0, 1, 1, 1]  # the tools made another cubin in night 2
    assert made["url"] == "https://example.org/r"


def test_one_night_is_shown_and_says_that_there_is_nothing_to_compare(ten: list[Night]) -> None:
    page = render(ten[:1], ROOT)
    assert "one night, 2026-11-10: nothing to compare it with" in page and "None slower" in page


SCRIPT = """<script>
addEventListener("load", async () => {
  const said = [], say = value => said.push(value);
  say([...document.querySelectorAll("#step-table th")].map(th => th.textContent));
  document.querySelector("#step-table tbody tr:nth-child(5) [data-step]").click();
  say(document.getElementById("drawer-title").textContent);
  const cards = [...drawer.querySelectorAll(".card")];
  say(cards.map(card => card.querySelector("h3").textContent));
  cards[1].querySelector("[data-point='3']").click();
  say(cards.map(card => card.querySelector(".point h3").textContent));
  say(cards[1].querySelector(".point a").href);
  say(cards[0].querySelector(".command pre").textContent);
  await new Promise(done => setTimeout(done, 100));  // uPlot draws in a task of its own
  const plot = [...drawn.values()][1].plot;
  const clientX = plot.over.getBoundingClientRect().left + plot.valToPos(9, "x");
  plot.over.dispatchEvent(new MouseEvent("click", {clientX}));
  say(cards[1].querySelector(".point h3").textContent);
  drawer.close();
  control("words").value = "layernorm mlir"; control("filters").dispatchEvent(new Event("input"));
  say(document.querySelectorAll("#cell-table tbody tr").length);
  const found = document.createElement("pre"); found.id = "found"; found.textContent = JSON.stringify(said);
  document.body.append(found);
});
</script>
"""


@pytest.mark.needs("chromium")
def test_a_click_on_a_night_leads_to_its_commits(ten: list[Night], tmp_path: Path) -> None:
    page = render(ten, ROOT, "https://example.org/r").replace("<body>", f"<body>{LISTEN}", 1)
    path = tmp_path / "page.html"
    path.write_text(page.replace("</body>", SCRIPT + "</body>"))
    command = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=2000",
               f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", path.as_uri()]  # fmt: skip
    dom = subprocess.run(command, capture_output=True, text=True, timeout=180, check=True).stdout
    assert "<body data-error" not in dom and "data-ready" in dom
    match = re.search(r'<pre id="found">(.*?)</pre>', dom, re.DOTALL)
    a, b, c, d = commit(2), commit(3), commit(4)[:12], commit(6)[:12]
    bisect = f"tilestack bisect {c} {d} --commits --source py --entry gelu_bf16 --target sm_90"
    assert match
    assert match[1].split(",") == (
        '[["night","cell","H100","H200","besides","commits"],"gelu bf16 M=4096 N=1024",'
        f'["{H100} sm_90","{H200} sm_90"],["2026-11-16 02:41 UTC","2026-11-13 02:41 UTC"],'
        f'"https://example.org/r/compare/{a}...{b}","{bisect}","2026-11-19 02:41 UTC",2]'
    ).split(",")

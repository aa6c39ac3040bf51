"""The page: one file that loads nothing, and what it shows in a browser."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from ci.report import load, render_html
from ci.report.html import PAGE
from toolchain.knobs import ROOT

from .conftest import bench_row, make_origin, make_row, two_machines

Save = Callable[..., Path]


def test_a_page_is_one_file_that_loads_nothing(save: Save, save_times: Save) -> None:
    page = render_html([*two_machines(save), *load([save_times("b.json", bench_row())])])
    assert not re.search(r"""(?:src|href)=["'](?!#|\\$|\\{)""", page)
    assert "default-src 'none'" in page
    assert "@import" not in page and "fetch(" not in page and "XMLHttpRequest" not in page
    assert "url(" not in page


def test_what_a_result_says_cannot_end_the_data(save: Save) -> None:
    said = "</script><script>alert(1)</script> <!-- \udcff"
    page = render_html(load([save("r.json", make_row("failed", detail=said, shape=said))]))
    assert "alert(1)</script>" not in page
    assert page.count("</script>") == 3


def test_the_library_is_the_published_one_and_may_be_given_away() -> None:
    source = tomllib.loads((PAGE / "uplot/source.toml").read_text())
    for name, sha256 in source["sha256"].items():
        assert hashlib.sha256((PAGE / "uplot" / name).read_bytes()).hexdigest() == sha256
    assert {path.name for path in (PAGE / "uplot").iterdir()} == {*source["sha256"], "source.toml"}
    policy = tomllib.loads((ROOT / "toolchain/provenance/policy.toml").read_text())
    assert source["licence"] in policy["licences"]["bundle"]
    assert source["version"] in (PAGE / "uplot/uPlot.iife.min.js").read_text()[:100]


def test_the_page_is_the_same_in_any_locale() -> None:
    code = "from ci.report import *; print(ascii(render_html([])))"
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, check=True)
    assert done.stdout.decode() == f"{render_html([])!a}\n"


LISTEN = "<script>addEventListener('error', e => { document.body.dataset.error = e.message; });</script>"
DO = """<script>
const said = [], say = value => said.push(value);
SCRIPT
const found = document.createElement("pre"); found.id = "found"; found.textContent = JSON.stringify(said);
document.body.append(found);
</script>"""


@pytest.fixture
def browse(tmp_path: Path) -> Callable[[str, str], str]:
    """Opens a page in Chromium from disk, runs a script in it, and returns the page as it is then."""

    def run(page: str, script: str = "") -> str:
        path = tmp_path / "page.html"
        page = page.replace("<body>", f"<body>{LISTEN}", 1)
        page = page.replace("</body>", DO.replace("SCRIPT", script) + "</body>")
        path.write_text(page)
        command = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=2000",
                   f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", path.as_uri()]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=True)
        assert "<body data-error" not in done.stdout
        assert "data-ready" in done.stdout
        return done.stdout

    return run


def found(page: str) -> str:
    match = re.search(r'<pre id="found">(.*?)</pre>', page, re.DOTALL)
    assert match
    return match[1]


@pytest.mark.needs("chromium")
def test_a_square_counts_what_passed_of_what_ran(save: Save, browse: Callable[..., str]) -> None:
    rows = [make_row(error=0.01, bound=0.04), make_row(shape="M=8"), make_row("not run", shape="M=9"),
            make_row("failed", op="linear"), make_row("not run", op="softmax")]  # fmt: skip
    page = browse(
        render_html(load([save("r.json", *rows, origin=make_origin())])),
        """
      for (const s of document.querySelectorAll("[data-s]")) say([s.ariaLabel.split(" on ")[0], s.textContent]);
    """,
    )
    assert found(page) == (
        '[["gelu-mlir-bf16","✓ 2/2"],["gelu-mlir-bf16","▪"],["linear-mlir-bf16","✗ 0/1"],["softmax-mlir-bf16","–"]]'
    )


@pytest.mark.needs("chromium")
def test_a_square_and_a_filter_select_exactly_their_op(save: Save, browse: Callable[..., str]) -> None:
    rows = [
        make_row(op=op, source=source) for op in ("linear", "linear_gelu", "my_linear") for source in ("mlir", "py")
    ]
    page = browse(
        render_html(load([save("r.json", *rows)])),
        """
      const click = label => [...grid.querySelectorAll("[data-s]")].find(s => s.ariaLabel.startsWith(label)).click();
      click("linear-py-bf16 on");
      say(document.getElementById("drawer-title").textContent);
      say(drawer.querySelectorAll("tbody tr").length);
      say(drawer.querySelector(".command pre").textContent);
      drawer.close();
      control("op").value = "linear"; control("op").dispatchEvent(new Event("change", {bubbles: true}));
      say([...document.querySelectorAll("#list tbody tr td:first-child")].map(td => td.textContent));
      say([...document.querySelectorAll("[data-line]:not([hidden]) .name")].map(n => n.textContent));
      control("op").value = ""; control("words").value = "linear_g py";
      control("words").dispatchEvent(new Event("input"));
      say([...document.querySelectorAll("#list tbody tr td:first-child")].map(td => td.textContent));
    """,
    )
    assert found(page) == (
        '["linear-py-bf16-sm_90",1,"tilestack reproduce linear-py-bf16-sm_90",'
        '["linear-mlir-bf16-sm_90","linear-py-bf16-sm_90"],["linearmlir","linearpy"],["linear_gelu-py-bf16-sm_90"]]'
    )


@pytest.mark.needs("chromium")
def test_the_keyboard_reaches_every_square(save: Save, browse: Callable[..., str]) -> None:
    rows = [make_row(op=op, dtype=dtype) for op in ("gelu", "linear") for dtype in ("f16", "bf16")]
    page = browse(
        render_html(load([save("r.json", *rows)])),
        """
      const here = () => document.activeElement.ariaLabel?.split(" on ")[0];
      const press = key => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
      const stops = () => grid.querySelectorAll('[tabindex="0"]').length;
      grid.querySelector('[tabindex="0"]').focus(); say(here());
      for (const key of ["ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp"]) { press(key); say(here()); }
      say(stops()); press("Enter"); say(drawer.open);
    """,
    )
    assert found(page) == (
        '["gelu-mlir-f16","gelu-mlir-bf16","linear-mlir-bf16","linear-mlir-f16","gelu-mlir-f16",1,true]'
    )


@pytest.mark.needs("chromium")
def test_charts_and_other_tools_tables_are_shown(save: Save, save_times: Save, browse: Callable[..., str]) -> None:
    times = [
        save_times("old.json", bench_row(ours_ms=0.7), date="2026-11-20 10:00 UTC"),
        save_times("new.json", bench_row()),
    ]
    runs = load(
        [*times, save("r.json", make_row(time_us=3.0, time_low_us=2.0, time_high_us=4.0), origin=make_origin())]
    )
    page = browse(
        render_html(
            runs,
            None,
            {"changed": [{"symbol": "gelu<1>", "after": {"registers": 40}}]},
            [{"target": "sm_90"}],
            [{"time": 0, "hits": 41}],
        ),
        """
      const section = id => document.getElementById(id);
      say(["speed", "roofline", "difference", "support", "cache"].map(id => section(id).hidden));
      say(section("speed").querySelectorAll("canvas").length);
      say(section("difference").querySelector("thead").textContent);
      say(section("difference").querySelector("tbody").textContent);
      document.querySelector("[data-s]").click();
      say(drawer.querySelectorAll("canvas").length);
      say([...drawer.querySelectorAll("h3")].map(h => h.textContent));
    """,
    )
    assert found(page) == (
        '[[false,false,false,false,false],1,"symbolafter registers","gelu&lt;1&gt;40",2,'
        '["Reproduce","Shapes","Time by shape","History","Benchmarks"]]'
    )

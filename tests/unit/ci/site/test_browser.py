"""The site in a browser: no page is wider than the screen, on a phone, a tablet and a desk."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest

from toolchain.knobs import ROOT

HARNESS = """<body><pre id="found"></pre><script>
async function look() {
  const found = [], frame = document.body.appendChild(document.createElement("iframe"));
  frame.style.height = "900px";
  for (const width of [390, 820, 1440]) {
    frame.style.width = width + "px";
    for (const page of PAGES) {
      await new Promise(done => { frame.onload = done; frame.src = page; });
      const root = frame.contentDocument.documentElement;
      found.push([width, page, root.scrollWidth - root.clientWidth]);
    }
  }
  document.getElementById("found").textContent = JSON.stringify(found);
}
look();
</script></body>"""


@pytest.mark.needs("chromium")
@pytest.mark.long("half a minute: builds the site and opens every page three times")
def test_no_page_is_wider_than_the_screen(tmp_path: Path) -> None:
    site = tmp_path / "site"
    subprocess.run([sys.executable, "-m", "ci.site", "--output", str(site)], cwd=ROOT, check=True)
    pages = [str(path.relative_to(site)) for path in sorted(site.rglob("*.html"))]
    (site / "harness.html").write_text(HARNESS.replace("PAGES", json.dumps(pages)))
    command = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
               "--virtual-time-budget=100000", "--window-size=1600,1000", f"--user-data-dir={tmp_path}/profile",
               "--dump-dom", str(site / "harness.html")]  # fmt: skip
    dom = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout
    text = re.search(r'<pre id="found">(.+?)</pre>', dom)
    assert text is not None, dom[:500]
    found = json.loads(unescape(text[1]))
    assert len(found) == 3 * len(pages)
    assert [row for row in found if row[2] > 0] == []

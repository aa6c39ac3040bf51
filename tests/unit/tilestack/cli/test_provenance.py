"""`tilestack provenance`."""

from __future__ import annotations

import hashlib
from pathlib import Path

from toolchain.bundles.bundle import Bundle

from ..conftest import Run


def test_a_statement_and_its_check(run: Run, bundle: Path, tmp_path: Path) -> None:
    output = tmp_path / "statement.json"
    assert run("provenance", bundle, "--output", output) == (0, "", "")
    ran = run("provenance", "--check", output, bundle)
    count = len(list(bundle.rglob("*.*")))
    assert ran == (0, f"{bundle} is what {output} states: {count} match\n", "")
    manifest = bundle / "manifest.json"
    good = manifest.read_text()
    manifest.write_text(good.replace('"fingerprint": "', '"fingerprint": "0'))
    refused = run("provenance", bundle)
    assert refused.code == 5 and "mlir/gelu_1024_f32" in refused.err and "other kernels" in refused.err
    manifest.write_text(good)
    file = Bundle.load(bundle).entries[0].bytecode
    file.path.write_bytes(b"other")
    (bundle / "more").touch()
    ran = run("provenance", "--check", output, bundle)
    assert ran.code == 5 and ran.out == ""
    found = hashlib.sha256(b"other").hexdigest()
    assert f"mismatch: files/{file.path.name}: sha256 {found}, stated {file.sha256}\n" in ran.err
    assert "unlisted: more\n" in ran.err and "next: get the bundle again" in ran.err


def test_what_is_no_statement(run: Run, bundle: Path, tmp_path: Path) -> None:
    ran = run("provenance", "--check", bundle / "manifest.json", bundle)
    assert ran.code == 2 and "manifest.json: _type is None" in ran.err
    ran = run("provenance", "--check", tmp_path / "none", bundle)
    assert ran.code == 2 and "cannot be read" in ran.err

"""How an audit reads the output of its tools. Only `nox -s audit` asks the real services."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolchain.errors import ToolchainError
from toolchain.provenance import audit


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with its locks, and a toolchain whose pip-audit finds something in a lock that has `bad` in it."""
    bin_ = tmp_path / "toolchain/venv/bin"
    bin_.mkdir(parents=True)
    (bin_ / "pip-audit").write_text('#!/bin/sh\nfor last; do :; done\n! grep -q bad "$last"\n')
    (bin_ / "pip-audit").chmod(0o755)
    monkeypatch.setenv("TILESTACK_TOOLCHAIN", str(tmp_path / "toolchain"))
    monkeypatch.delenv("CONAN_AUDIT_PROVIDER_TOKEN_CONANCENTER", raising=False)
    for name in audit.LOCKS:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("good==1\n")
    monkeypatch.setattr(audit, "uv", lambda *_, **__: None)
    return tmp_path


def conan(root: Path, says: str, code: int = 0) -> None:
    path = root / "build/conan/bin/conan"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{says}\nEND\nexit {code}\n")
    path.chmod(0o755)


def test_each_lock_is_audited(tools: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert audit.audit(tools) == []
    assert "conan.lock:\nskipped: there is no conan.lock\n" in capfd.readouterr().out
    (tools / "bootstrap.lock").write_text("bad==1\n")
    assert audit.audit(tools) == ["bootstrap.lock"]


def test_what_is_missing_is_named(tools: Path) -> None:
    (tools / "bootstrap.lock").unlink()
    with pytest.raises(ToolchainError, match=r"bootstrap\.lock: missing"):
        audit.audit(tools)
    (tools / "toolchain/venv/bin/pip-audit").unlink()
    with pytest.raises(ToolchainError, match=r"pip-audit: missing(.|\n)*build_toolchain"):
        audit.audit(tools)


def test_without_a_token_native_packages_are_skipped_and_it_is_said(tools: Path) -> None:
    (tools / "conan.lock").write_text("{}")
    assert "CONAN_AUDIT_PROVIDER_TOKEN_CONANCENTER is not set" in str(audit.conan_skipped(tools))


def test_native_packages(tools: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    (tools / "conan.lock").write_text("{}")
    monkeypatch.setenv("CONAN_AUDIT_PROVIDER_TOKEN_CONANCENTER", "t")
    well = '"zlib/1": {"vulnerabilities": {"totalCount": 0, "edges": []}}'
    unknown = '"cuda-tile/13": {"error": {"details": "not scanned: Not found."}}'
    ill = '"llvm/22": {"vulnerabilities": {"edges": [{"node": {"name": "CVE-1", "severity": "High"}}]}}'
    conan(tools, f'{{"data": {{{well}, {unknown}}}}}')
    assert audit.audit(tools) == []
    assert "zlib/1: no known vulnerability\ncuda-tile/13: not audited: not scanned" in capfd.readouterr().out
    conan(tools, f'{{"data": {{{well}, {ill}}}}}')
    assert audit.audit(tools) == ["conan.lock"]
    assert "llvm/22: CVE-1 (High)" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("says", "code"),
    [("oops", 0), ('{"data": {}, "conan_error": "Rate limit exceeded."}', 0), ('{"data": {}}', 6), ("[]", 0),
     ('{"data": {"x": {}}}', 0)],
)  # fmt: skip
def test_a_service_that_does_not_answer_is_an_error(
    tools: Path, monkeypatch: pytest.MonkeyPatch, says: str, code: int
) -> None:
    (tools / "conan.lock").write_text("{}")
    monkeypatch.setenv("CONAN_AUDIT_PROVIDER_TOKEN_CONANCENTER", "t")
    conan(tools, says, code)
    with pytest.raises(ToolchainError, match=r"conan audit list(.|\n)*check the token"):
        audit.conan_audit(tools)


def test_exit_codes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(audit, "audit", list)
    assert audit.main() == 0
    monkeypatch.setattr(audit, "audit", lambda: ["requirements.lock"])
    assert audit.main() == 1 and "requirements.lock" in capsys.readouterr().err

    def fail() -> list[str]:
        raise ToolchainError("no network")

    monkeypatch.setattr(audit, "audit", fail)
    assert audit.main() == 4 and "error: no network" in capsys.readouterr().err

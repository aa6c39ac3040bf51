from __future__ import annotations

import dataclasses
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from toolchain.bundles.bundle import Bundle, write
from toolchain.errors import BundleError, ToolchainError, UsageError
from toolchain.pinned.pins import file_sha256
from toolchain.provenance.statement import Checkout, check, checkout, hashes, parse, render, statement

from .conftest import FINGERPRINTS, compiled

SOURCE = Checkout("0123456789abcdef0123456789abcdef01234567", dirty=False)


@pytest.fixture(autouse=True)
def no_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)


def dependencies(made: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in made["predicate"]["buildDefinition"]["resolvedDependencies"]}


def test_a_statement(bundle: Bundle) -> None:
    made = json.loads(render(statement(bundle, SOURCE, FINGERPRINTS)))
    assert made["_type"] == "https://in-toto.io/Statement/v1"
    assert made["predicateType"] == "https://slsa.dev/provenance/v1"
    subjects = {row["name"]: row["digest"]["sha256"] for row in made["subject"]}
    assert subjects == hashes(bundle.root) and len(subjects) == 5 and "manifest.json" in subjects
    build = made["predicate"]["buildDefinition"]
    assert build["externalParameters"] == {
        "sources": ["mlir", "py"], "targets": ["sm_90"], "entries": ["mlir/gelu_f32", "py/gelu_f32"],
        "bytecodeVersions": ["13.3"], "assemblerOptions": ["--opt-level=3"],
    }  # fmt: skip
    found = dependencies(made)
    assert found["checkout"]["digest"] == {"gitCommit": SOURCE.commit} and "uri" not in found["checkout"]
    assert found["checkout"]["annotations"] == {"dirty": False}
    assert {"requirements.lock", "pins.toml", "tileiras", "ptxas"} < set(found)
    assert found["ptxas"]["digest"]["sha256"] == bundle.tools["ptxas"]["sha256"]
    assert made["predicate"]["runDetails"] == {"builder": {"id": "local"}}
    assert statement(bundle, SOURCE, FINGERPRINTS) == made


def test_in_ci_the_builder_is_the_workflow(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {
        "ACTIONS": "true", "SERVER_URL": "https://forge.example", "REPOSITORY": "o/r", "RUN_ID": "7",
        "WORKFLOW_REF": "o/r/.github/workflows/ci.yml@refs/heads/main", "RUN_ATTEMPT": "2",
    }  # fmt: skip
    for name, value in given.items():
        monkeypatch.setenv(f"GITHUB_{name}", value)
    made = statement(bundle, SOURCE, FINGERPRINTS)
    assert made["predicate"]["runDetails"] == {
        "builder": {"id": "https://forge.example/o/r/.github/workflows/ci.yml@refs/heads/main"},
        "metadata": {"invocationId": "https://forge.example/o/r/actions/runs/7/attempts/2"},
    }
    assert dependencies(made)["checkout"]["uri"] == "git+https://forge.example/o/r"
    monkeypatch.delenv("GITHUB_RUN_ID")
    with pytest.raises(UsageError, match="GITHUB_RUN_ID is not set"):
        statement(bundle, SOURCE, FINGERPRINTS)


def test_bytecode_only(tmp_path: Path) -> None:
    entry = compiled("gelu_f32")
    bare = type(entry)(entry.spec, entry.artifact, {}, entry.fingerprint)
    made = statement(write(tmp_path / "b", [bare], {}), SOURCE, FINGERPRINTS)
    assert made["predicate"]["buildDefinition"]["externalParameters"]["assemblerOptions"] == []


def test_a_bundle_of_other_tools_is_not_ours_to_state(tmp_path: Path, bundle: Bundle) -> None:
    for tools in ({"tileiras": {"version": "12", "sha256": "0" * 64}}, {"nvcc": {"version": "12", "sha256": "0" * 64}}):
        other = write(tmp_path / "other", [compiled("gelu_f32")], tools)
        with pytest.raises(BundleError, match=r"compiled by (tileiras|nvcc) 12 with sha256 0{64}"):
            statement(other, SOURCE, FINGERPRINTS)
    bundle.entries[0].cubins["sm_90"].path.write_bytes(b"other")
    with pytest.raises(BundleError, match="damaged"):
        statement(bundle, SOURCE, FINGERPRINTS)


def test_a_bundle_of_other_kernels_is_not_ours_to_state(bundle: Bundle) -> None:
    for known in ({**FINGERPRINTS, ("py", "gelu_f32"): "of later"}, {("mlir", "gelu_f32"): "f1"}):
        with pytest.raises(BundleError, match=r"bundle: py/gelu_f32: compiled from other(.|\n)*compile it again"):
            statement(bundle, SOURCE, known)
    old = type(bundle)(bundle.root, tuple(dataclasses.replace(e, fingerprint="") for e in bundle.entries), bundle.tools)
    with pytest.raises(BundleError, match="mlir/gelu_f32, py/gelu_f32: compiled"):
        statement(old, SOURCE, dict.fromkeys(FINGERPRINTS, ""))


def test_a_check_says_what_differs(bundle: Bundle) -> None:
    made = parse(render(statement(bundle, SOURCE, FINGERPRINTS)), "s.json")
    assert {row.status for row in check(made, bundle.root)} == {"match"}
    changed, gone = bundle.entries[0].bytecode, bundle.entries[1].bytecode
    changed.path.write_bytes(b"other")
    gone.path.unlink()
    (bundle.root / "more").write_bytes(b"more")
    rows = {row.name: row for row in check(made, bundle.root) if row.status != "match"}
    name = f"files/{changed.path.name}"
    assert (rows[name].status, rows[name].expected, rows[name].found) == (
        "mismatch", changed.sha256, file_sha256(changed.path),
    )  # fmt: skip
    assert (rows[f"files/{gone.path.name}"].status, rows[f"files/{gone.path.name}"].found) == ("missing", "")
    assert (rows["more"].status, rows["more"].expected) == ("unlisted", "")
    assert len(rows) == 3
    with pytest.raises(BundleError, match="no such folder"):
        check(made, bundle.root / "none")


def test_what_is_no_file_is_not_passed_over(bundle: Bundle) -> None:
    made = statement(bundle, SOURCE, FINGERPRINTS)
    (bundle.root / "files" / "link").symlink_to("/nowhere")
    with pytest.raises(BundleError, match=rf"no file: {bundle.root}/files/link\n"):
        check(made, bundle.root)


def test_a_damaged_statement_is_named(bundle: Bundle) -> None:
    good = statement(bundle, SOURCE, FINGERPRINTS)
    subject = {"name": "manifest.json", "digest": {"sha256": "0" * 64}}
    build = {"buildDefinition": {"buildType": "urn:another"}}
    for change, said in (
        ({"_type": "https://in-toto.io/Statement/v0.1"}, "_type is 'https://in-toto.io/Statement/v0.1'"),
        ({"predicateType": None}, "predicateType is None"),
        ({"predicate": {}}, "KeyError: 'buildDefinition'"),
        ({"predicate": build}, "a build of type 'urn:another'"),
        ({"subject": []}, "no subjects"),
        ({"subject": 3}, "damaged"),
        ({"subject": [{"name": "x", "digest": {"md5": "0"}}]}, "KeyError: 'sha256'"),
        ({"subject": [subject, subject]}, "'manifest.json' is listed twice"),
        ({"subject": [{**subject, "name": "../x"}]}, "'../x' is not a path in a bundle"),
        ({"subject": [{**subject, "name": "/x"}]}, "'/x' is not a path in a bundle"),
    ):
        with pytest.raises(UsageError, match=r"^s\.json") as caught:
            parse(render({**good, **change}), "s.json")
        assert said in str(caught.value)
    for text in (b"", b"{", b"\xff", b"[]", b"3", b"[" * 100_000):
        with pytest.raises(UsageError, match=r"^s\.json"):
            parse(text, "s.json")


def test_the_commit_and_whether_files_differ_from_it(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match=r"rev-parse HEAD\n  exited 128(.|\n)*in a git checkout"):
        checkout(tmp_path)
    for command in ("init -q", "-c user.name=n -c user.email=e commit -q --allow-empty -m m"):
        subprocess.run(["git", "-C", str(tmp_path), *command.split()], check=True)
    clean = checkout(tmp_path)
    assert len(clean.commit) == 40 and not clean.dirty
    (tmp_path / "new").touch()
    assert checkout(tmp_path) == Checkout(clean.commit, dirty=True)


def test_no_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolchainError, match="git is not installed"):
        checkout(tmp_path)

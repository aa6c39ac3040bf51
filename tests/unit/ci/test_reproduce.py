"""Commands whose output depends on a varied condition are found and the condition is named; other commands pass."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from ci.reproduce import __main__ as command
from ci.reproduce import artefacts, building, comparing, variation
from ci.reproduce.artefacts import Artefact
from ci.reproduce.building import Commit
from ci.reproduce.comparing import Clue, Times
from ci.reproduce.report import Report
from toolchain import knobs
from toolchain.bundles.bundle import Compiled, write
from toolchain.contract.artifact import tile_ir
from toolchain.contract.entry import EntrySpec
from toolchain.errors import UsageError

LEAKS = """\
import os, random, socket, sys, time
out = sys.argv[1]
def leak(name, value):
    with open(f"{out}/{name}", "wb") as file:
        file.write(value if isinstance(value, bytes) else f"before\\n{value}\\nafter\\n".encode())
leak("clean", "the same")
leak("time", time.time())
leak("path", os.getcwd())
leak("home", os.path.expanduser("~/x"))
leak("order", " ".join({"alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta"}))
leak("lines", "\\n".join(os.listdir("many")))
leak("host", socket.gethostname())
leak("zone", time.strftime("%z"))
first = bytes([os.environ["TILESTACK_JOBS"] == "1"])  # of eight random bytes the first is the same once in 256 times
leak("binary", bytes(100) + first + random.randbytes(7) + bytes(100))
if os.environ["TILESTACK_JOBS"] == "1":
    leak("alone", "")
"""
CLEAN = """\
import os, sys
with open(sys.argv[1], "w") as file:
    file.write(open("data").read() + " ".join(sorted(os.listdir("many"))))
"""
NOWHEN = Times((0, 1), (2, 3))


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two programs, in the place of ours; and no toolchain."""
    root = tmp_path / "repository"
    (root / "many").mkdir(parents=True)
    for number in range(40):
        (root / "many" / f"file{number:02}").touch()
    (root / "data").write_text("data\n")
    (root / "leaks.py").write_text(LEAKS)
    (root / "clean.py").write_text(CLEAN)
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@localhost", "-C", str(root)]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    monkeypatch.setattr(knobs, "ROOT", root)
    monkeypatch.setenv("TILESTACK_TOOLCHAIN", str(tmp_path / "none"))
    return root


def reproduce(tmp_path: Path, *chosen: Artefact) -> Report:
    commit = building.commit("HEAD")
    return command.reproduce(chosen, [], commit, tmp_path / "work", python=Path(sys.executable), uv=tmp_path / "uv")


def program(name: str, output: str = "{out}", **more: object) -> Artefact:
    return Artefact(name, ("{python}", f"{{checkout}}/{name}.py", output), output, **more)  # type: ignore[arg-type]


@pytest.mark.usefixtures("repository")
def test_leaks_are_found_and_named(tmp_path: Path) -> None:
    report = reproduce(tmp_path, program("leaks"))
    (result,) = report.results
    assert (result.status, report.good) == ("differs", False)
    causes = {file.name: file.cause for file in result.files if not file.identical}
    varied = {row.what for row in report.varied if not row.reason}
    assert "clean" not in causes and {"time", "path", "home", "order", "zone", "binary", "alone"} <= set(causes)
    assert (
        "it holds the path of the checkout" in causes["path"] and str(tmp_path / "work" / "a" / "c") in causes["path"]
    )
    assert "it holds the home folder" in causes["home"]
    assert "it holds the time when it was built" in causes["time"]
    assert causes["order"].startswith("the same words in another order")
    assert causes["zone"].splitlines()[-2:] == ["-+0000", "++1400"]
    assert "first difference at byte 100 of 208 and 208\nfirst  00000040" in causes["binary"]
    assert causes["alone"] == "only in the first build"
    assert ("hostname" in varied) == ("host" in causes)
    assert "hostname" not in varied or "it holds the hostname" in causes["host"]
    assert ("order of files" in varied) == ("lines" in causes)
    assert "order of files" not in varied or causes["lines"].startswith("the same lines in another order")


@pytest.mark.usefixtures("repository")
def test_what_leaks_nothing_is_identical(tmp_path: Path) -> None:
    report = reproduce(tmp_path, program("clean", "{out}/file"))
    (result,) = report.results
    assert (result.status, [f.name for f in result.files], result.identical) == ("identical", ["file"], 1)
    assert report.good and len(result.seconds) == 2
    assert not report.commit.dirty
    rows = {row.what: row for row in report.varied}
    assert {"path of the checkout", "home folder", "temporary folder", "time zone", "locale", "umask", "hostname",
            "jobs at once", "PYTHONHASHSEED", "user", "time", "order of files"} <= set(rows)  # fmt: skip
    assert all(row.reason or row.first != row.second for row in rows.values())
    assert rows["path of the toolchain"].reason  # there is none here


@pytest.mark.usefixtures("repository")
def test_the_commands_see_what_the_report_says(tmp_path: Path) -> None:
    code = (
        "import json, os, socket, sys, time; mask = os.umask(0); json.dump(dict(os.environ, umask=f'{mask:03o}', "
        "uid=os.geteuid(), host=socket.gethostname(), cwd=os.getcwd(), offset=time.timezone), open(sys.argv[1], 'w'))"
    )
    report = reproduce(tmp_path, Artefact("see", ("{python}", "-c", code, "{out}/file")))
    folders = (tmp_path / "work" / "a", tmp_path / "work" / "the-second-of-two-builds/its-path-is-longer/and deeper")
    one, two = (json.loads((folder / "out/see/file").read_text()) for folder in folders)
    rows = {row.what: row for row in report.varied}
    for what, name in (("path of the checkout", "cwd"), ("home folder", "HOME"), ("temporary folder", "TMPDIR"),
                       ("time zone", "TZ"), ("PYTHONHASHSEED", "PYTHONHASHSEED"), ("jobs at once", "TILESTACK_JOBS"),
                       ("umask", "umask"), ("PATH", "PATH")):  # fmt: skip
        assert (one[name], two[name]) == (rows[what].first, rows[what].second), what
        assert one[name] != two[name]
    assert two["LC_ALL"] == rows["locale"].second.partition(" ")[0]
    assert rows["hostname"].reason or (one["host"], two["host"]) == (rows["hostname"].first, "another-host")
    assert rows["user"].reason or (str(two["uid"]) in rows["user"].second and one["uid"] != two["uid"])
    assert (one["offset"], two["offset"]) == (0, -14 * 3600)
    assert one["SOURCE_DATE_EPOCH"] == two["SOURCE_DATE_EPOCH"] == str(report.commit.epoch)
    assert "USERNAME" not in one and one["PYTHONPATH"] == one["cwd"]
    assert one["TILESTACK_CACHE_DIR"] != two["TILESTACK_CACHE_DIR"]


@pytest.mark.usefixtures("repository")
def test_a_change_in_one_copy_is_seen(tmp_path: Path) -> None:
    python, chosen = Path(sys.executable), [program("clean", "{out}/file")]
    with command.prepared(building.commit("HEAD"), tmp_path / "work", python) as (one, two, rows):
        with (two.checkout / "data").open("a") as file:
            file.write("marker")
        made = [command.build(side, chosen, {}, [], python, tmp_path / "uv") for side in (one, two)]
        result = command.judge(chosen[0], {}, made[0], made[1], rows)
        assert not two.checkout.is_relative_to(one.checkout)
    assert result.status == "differs" and "+markerfile00" in result.files[0].cause
    assert not two.checkout.exists() or two.checkout.is_relative_to(tmp_path)  # what was in memory is gone


@pytest.mark.usefixtures("repository")
def test_what_is_not_run_and_what_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(artefacts.NEEDS, "engine", lambda _: "no socket\n  next: start one")
    image = Artefact("image", ("make-image",), needs=("engine",))
    report = reproduce(tmp_path, image, Artefact("of-it", ("true",), after=("image",)), program("clean", "{out}/file"))
    assert [result.status for result in report.results] == ["not run", "not run", "identical"] and report.good
    assert report.results[0].reason == "engine: no socket\n  next: start one"
    assert report.results[1].reason == "image: not built"

    broken = Artefact("broken", ("sh", "-c", "echo out of luck >&2; exit 3"))
    absent = Artefact("absent", ("no-such-program",))
    silent = Artefact("silent", ("true",), output="{out}/file")
    empty = Artefact("empty", ("true",))
    no_bundle = Artefact("no-bundle", ("sh", "-c", "echo x > '{out}/x'"), form="bundle")
    report = reproduce(tmp_path, broken, absent, silent, empty, no_bundle)
    assert {result.status for result in report.results} == {"failed"} and not report.good
    reasons = {result.name: result.reason for result in report.results}
    assert "exited 3" in reasons["broken"] and "out of luck" in reasons["broken"]
    assert "no-such-program" in reasons["absent"]
    assert "made no " in reasons["silent"] and "is empty" in reasons["empty"] and "no bundle in" in reasons["no-bundle"]


def test_the_command_line(repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "table.toml"
    table.write_text(
        '[[artefact]]\nname = "clean"\ncommand = ["{python}", "clean.py", "{out}/f"]\n'
        '[[artefact]]\nname = "leaks"\ncommand = ["{python}", "leaks.py", "{out}"]\nneeds = ["uv"]\n'
    )
    words = ["--table", str(table), "--output", str(tmp_path / "o"), "--uv", str(tmp_path / "uv")]
    assert command.main(words) == 0
    shown = capsys.readouterr().out
    assert "leaks: not run: uv: no " in shown and not (tmp_path / "o" / "work").exists()

    (tmp_path / "uv").touch()
    (repository / "data").write_text("not committed")
    assert command.main(words) == 1
    assert "leaks: path differs" in capsys.readouterr().out
    assert (tmp_path / "o" / "work" / "a" / "leaks.log").exists()  # kept, to look into
    report = json.loads((tmp_path / "o" / "report.json").read_text())
    clean, leaks = report["artefacts"]
    assert (clean["status"], leaks["status"], report["good"]) == ("identical", "differs", False)
    assert clean["files"][0]["sha256"][0] == clean["files"][0]["sha256"][1] and clean["files"][0]["identical"]
    assert "the checkout has uncommitted changes: they were not built" in report["notes"]
    text = (tmp_path / "o" / "report.md").read_text()
    assert "| clean | identical | 1 | 1 |" in text and "it holds the path of the checkout" in text
    assert f"Commit `{report['commit']['sha']}`. Something differs" in text

    assert command.main([*words, "--only", "clean"]) == 0
    assert command.main([*words, "--only", "nope"]) == UsageError.exit_code
    assert "no artefact nope\n  next: one of clean, leaks" in capsys.readouterr().err
    assert command.main([*words, "--commit", "nope"]) == UsageError.exit_code
    (tmp_path / "o" / "work").mkdir()
    (tmp_path / "o" / "work" / "precious").touch()
    assert command.main(words) == UsageError.exit_code
    assert (tmp_path / "o" / "work" / "precious").exists()


def test_the_table_of_this_repository() -> None:
    found = {artefact.name: artefact for artefact in artefacts.load()}
    assert {"kernels", "archive", "wheel-and-sdist"} <= set(found)
    assert [row.name for row in artefacts.choose(list(found.values()), ["archive"])] == ["kernels", "archive"]
    words = found["kernels"].words(["--target", "sm_90"], {"python": "P", "out": "O"})
    assert words == ["P", "-m", "tilestack", "compile", "--output", "O/bundle", "--target", "sm_90"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "artefact"),
        ("[[artefact]]\n", "missing 2 required"),
        ('[[artefact]]\nname = "A b"\ncommand = ["x"]\n', "a name has"),
        ('[[artefact]]\nname = "a"\ncommand = []\n', "no command"),
        ('[[artefact]]\nname = "a"\ncommand = ["x"]\nneeds = ["luck"]\n', "needs luck: one of toolchain, uv, engine"),
        ('[[artefact]]\nname = "a"\ncommand = ["x"]\nkeep = {umask = "no"}\n', "keeps umask"),
        ('[[artefact]]\nname = "a"\ncommand = ["x"]\nform = "zip"\n', "neither files nor bundle"),
        ('[[artefact]]\nname = "a"\ncommand = ["x"]\nafter = ["b"]\n', "comes after b: none above it"),
        ('[[artefact]]\nname = "a"\ncommand = ["x"]\n' * 2, "two artefacts are named a"),
        ('[[artefact]]\nname = "a"\ncommand = ["x"]\nother = 1\n', "other"),
    ],
)
def test_a_bad_table(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "t.toml").write_text(text)
    with pytest.raises(UsageError, match=said):
        artefacts.load(tmp_path / "t.toml")


def test_what_a_machine_does_not_allow_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = Path(sys.executable)
    monkeypatch.setattr(variation, "installed_locales", lambda: ["C"])
    monkeypatch.setattr(variation.shutil, "which", lambda _: None)
    for root in (True, False):
        _, two, rows = variation.plan(tmp_path, epoch=1, python=python, root=root)
        reasons = {row.what: row.reason for row in rows if row.reason}
        assert two.wrappers == {} and two.uid is None
        assert reasons["time"] == "faketime is not installed" and "unshare is not" in reasons["hostname"]
        assert reasons["locale"] == "no other locale is installed" and reasons["user"]
    monkeypatch.setattr(variation.shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(variation, "_is_later", lambda *_: True)
    monkeypatch.setattr(
        variation, "refusal", lambda words, *_: f"{words[-4:]} refused" if "/bin/setpriv" in words else None
    )
    _, two, rows = variation.plan(tmp_path, epoch=1, python=python, root=True)
    assert list(two.wrappers) == ["hostname", "time"] and two.uid is None
    monkeypatch.setattr(variation, "refusal", lambda *_: None)
    for root, names in ((True, ["hostname", "user", "time"]), (False, ["hostname+user", "time"])):
        _, two, _ = variation.plan(tmp_path, epoch=1, python=python, root=root)
        assert list(two.wrappers) == names and two.uid == (variation.NOBODY if root else None)
        assert two.wrapped(["x"], {"user": "no", "hostname": "no"}) == ["/bin/faketime", "-f", "+400d", "x"]
        assert two.wrapped(["x"], {"time": "no"})[0] == "/bin/unshare"
    monkeypatch.setattr(variation, "_is_later", lambda *_: False)
    _, two, rows = variation.plan(tmp_path, epoch=1, python=python)
    assert "time" not in two.wrappers
    assert {row.reason for row in rows if row.what == "time"} == {"/bin/faketime leaves the clock as it is"}
    monkeypatch.undo()
    assert not variation._is_later(["env"], python)
    with variation.memory_folder(tmp_path / "none") as folder:
        assert folder is None


def test_a_folder_that_the_other_user_may_not_enter(tmp_path: Path) -> None:
    python = Path(sys.executable)
    assert variation.refusal(["env"], python, [tmp_path]) is None
    said = variation.refusal(["env"], python, [tmp_path, tmp_path / "none"])
    assert said == f"env exited 1: no access to {tmp_path / 'none'}"
    assert "exited 9" in (variation.refusal(["sh", "-c", "exit 9"], python, []) or "")
    assert "No such file" in (variation.refusal(["no-such-program"], python, []) or "")


@pytest.mark.usefixtures("repository")
def test_sources_of_another_place_are_an_error(tmp_path: Path) -> None:
    python = Path(sys.executable)
    with command.prepared(building.commit("HEAD"), tmp_path / "work", python) as (one, _, _):
        for name in building.PACKAGES:  # the copy has none: Python would find some elsewhere, or none
            assert not (one.checkout / name).exists()
        with pytest.raises(building.ToolchainError, match=r"not of its own copy|cannot import"):
            building.check_sources(one, python)
        for name in building.PACKAGES:
            (one.checkout / name).mkdir()
            (one.checkout / name / "__init__.py").touch()
        building.check_sources(one, python)


def packed(kind: str, names: dict[str, bytes], *, mtime: int = 0) -> bytes:
    stream = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(stream, "w") as archive:
            for name, data in names.items():
                archive.writestr(zipfile.ZipInfo(name, (1980 + mtime, 1, 1, 0, 0, 0)), data)
        return stream.getvalue()
    with tarfile.open(fileobj=stream, mode=f"w:{kind}") as archive:
        for name, data in names.items():
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(data), mtime
            archive.addfile(member, io.BytesIO(data))
    return stream.getvalue()


@pytest.mark.parametrize("kind", ["", "xz", "zip"])
def test_archives_are_looked_into(kind: str) -> None:
    clues = [Clue("home folder", "/home/one", "/home/two")]

    def said(one: bytes, two: bytes) -> str:
        return comparing.look(one, two, clues, NOWHEN)

    base = packed(kind, {"a": b"1", "b": b"2"})
    assert "time of 2 members, the first a:" in said(base, packed(kind, {"a": b"1", "b": b"2"}, mtime=3))
    assert said(base, packed(kind, {"b": b"2", "a": b"1"})).startswith("the same members in another order")
    assert said(base, packed(kind, {"a": b"1", "c": b"2"})) == "members that only one of them has: b, c"
    found = said(packed(kind, {"a": b"at /home/one\n"}), packed(kind, {"a": b"at /home/two\n"}))
    assert found.startswith("content of 1 members, the first a: it holds the home folder: '/home/one', '/home/two'")


@pytest.mark.parametrize("kind", ["xz", "gz", "zip"])
def test_archives_that_cannot_be_read_are_compared_as_bytes(kind: str) -> None:
    whole = packed(kind, {"a": b"1" * 5000})
    at = len(whole) // 2 if kind != "zip" else 60
    damaged = whole[:at] + b"\xff" * 8 + whole[at + 8 :]
    assert comparing.look(whole, damaged, [], NOWHEN).startswith("the cause is not known")


def test_a_zip_whose_names_are_no_text_is_compared_as_bytes() -> None:
    whole = packed("zip", {"ä": b"1"})
    damaged = whole.replace("ä".encode(), b"\xff\xff")
    assert comparing.look(whole, damaged, [], NOWHEN).startswith("the cause is not known")


def test_files_of_a_bundle_are_named_by_entry(tmp_path: Path) -> None:
    def bundle(name: str, mark: bytes) -> Path:
        spec = EntrySpec("gelu_f32", "gelu", "py", "f32")
        return write(tmp_path / name, [Compiled(spec, tile_ir(b"code", "13.3"), {"sm_90": b"\0cubin" + mark})], {}).root

    one, two = (comparing.files_of(bundle(name, name.encode()), "bundle") for name in ("one", "two"))
    found = {file.name: file.identical for file in comparing.compare(one, two, [], NOWHEN)}
    assert found == {"manifest.json": False, "py/gelu_f32.tilebc": True, "py/gelu_f32.sm_90.cubin": False}


def test_links_and_files_of_one_build_only(tmp_path: Path) -> None:
    for name, to in (("one", "x"), ("two", "y")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "link").symlink_to(to)
        (tmp_path / name / f"only-{name}").touch()
    one, two = (comparing.files_of(tmp_path / name, "files") for name in ("one", "two"))
    rows = {file.name: file for file in comparing.compare(one, two, [], NOWHEN)}
    assert not rows["link"].identical
    assert rows["only-one"].cause == "only in the first build" and rows["only-two"].sha256[0] is None


def test_diffoscope_is_asked_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "diffoscope"
    for code, said in ((1, "diffoscope:\n--text - "), (2, "diffoscope exited 2: broken")):
        fake.write_text(f'#!/bin/sh\necho "$2 $3 $4 $5"\necho broken >&2\nexit {code}\n')
        fake.chmod(0o755)
        monkeypatch.setattr(comparing.shutil, "which", lambda _: str(fake))
        (tmp_path / "one").write_text("1\n")
        (tmp_path / "two").write_text("2\n")
        assert said in comparing.cause(tmp_path / "one", tmp_path / "two", [], NOWHEN)


@pytest.mark.usefixtures("repository")
def test_a_commit_is_read_from_git() -> None:
    found = building.commit("HEAD")
    assert isinstance(found, Commit) and len(found.sha) == 40 and found.epoch > 1_500_000_000 and not found.dirty

"""A wheel installs one name and has the modules and tables of the checkout."""

from __future__ import annotations

import ast
import csv
import io
import json
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from importlib.metadata import metadata
from pathlib import Path

import pytest

from toolchain.knobs import ROOT
from toolchain.setup import packaging

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
VERSION: str = PROJECT["version"]
ENTRIES = """if True:
    import dataclasses, json, sys
    from pathlib import Path
    where = Path(sys.argv[1])
    sys.path[:] = [str(where), *(path for path in sys.path if path != sys.argv[2])]
    import tilestack.__main__
    from tilestack.cli.common.options import SOURCES
    from toolchain.contract.sources import load_source
    found = {name: [spec.to_json() for spec in load_source(package).entries()] for name, package in SOURCES.items()}
    import ci.report, conformance.ops.run, gpt.model, tune
    for name in ("ci", "conformance", "gpt", "kernels_mlir", "kernels_py", "tilestack", "toolchain", "tune"):
        assert Path(sys.modules[name].__file__).is_relative_to(where), (name, sys.modules[name].__file__)
    print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _build(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def _build(root: Path, folder: Path, what: str = "build_wheel") -> Path:
    code = f"import sys; from toolchain.setup import packaging; print(packaging.{what}(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder / done.stdout.strip()


def _entries(where: Path) -> dict[str, list[object]]:
    command = [sys.executable, "-P", "-c", ENTRIES, str(where), "" if where == ROOT else str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=where)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_wheel_installs_two_names(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.partition("/")[0] for name in names} == {
        "cute_runtime", "tilestack", f"tilestack-{VERSION}.dist-info",
    }  # fmt: skip
    inside = {name.split("/")[2] for name in names if name.startswith("tilestack/_lib/")}
    assert not inside & {"examples", "tests", "third_party", "containers", "noxfile.py"}
    assert not [name for name in names if "__pycache__" in name or name.startswith("tilestack/_lib/ci/reproduce")]


def test_a_wheel_imports_nothing_of_ours_that_it_lacks(installed: Path) -> None:
    """But what says first that it needs a checkout."""
    guarded = {"tilestack/cli/matrix_plan.py", "tilestack/cli/reproduce.py"}
    roots = {folder.name: folder.parent for folder in ROOT.iterdir() if any(folder.glob("*.py"))}
    lacks = []
    for file in sorted(installed.rglob("*.py")):
        where = file.relative_to(installed)
        here = where.relative_to("tilestack/_lib") if "_lib" in where.parts else where
        for node in ast.walk(ast.parse(file.read_text())):
            for name in _imported(node, here):
                place = ROOT / name.replace(".", "/")
                if name.partition(".")[0] not in roots or not (place.is_dir() or place.with_suffix(".py").is_file()):
                    continue  # somebody else's, or a name in a module
                homes = [installed / place.relative_to(ROOT), installed / "tilestack/_lib" / place.relative_to(ROOT)]
                if not any(home.is_dir() or home.with_suffix(".py").is_file() for home in homes):
                    lacks.append(f"{where}: {name}")
    assert not [line for line in lacks if line.partition(":")[0] not in guarded]
    assert {line.partition(":")[0] for line in lacks} == guarded


def _imported(node: ast.AST, where: Path) -> list[str]:
    """The modules, and the names in them, that a statement of the file `where` imports, in full."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    package = where.parts[: len(where.parts) - node.level] if node.level else ()
    module = ".".join([*package, *([node.module] if node.module else [])])
    return [module, *(f"{module}.{alias.name}" for alias in node.names)]


def test_a_wheel_has_the_entries_of_the_checkout(installed: Path) -> None:
    """This includes the tuned ones: without their tables a wheel would silently compile slower kernels."""
    here, there = _entries(ROOT), _entries(installed)
    assert sorted(there) == sorted(here)
    assert all(there[name] == here[name] for name in here)
    assert any(spec["targets"] for spec in there["mlir"])  # pyright: ignore[reportIndexIssue, reportUnknownMemberType, reportCallIssue, reportArgumentType]


def test_the_command_of_a_wheel_runs(installed: Path, tmp_path: Path) -> None:
    """In a folder that has names like ours, and without the checkout's place in the search path."""
    (tmp_path / "toolchain").mkdir()
    (tmp_path / "toolchain" / "__init__.py").write_text("raise ImportError('of another project')\n")
    code = (
        f"import sys; sys.path[:] = ['', {str(installed)!r}, *(p for p in sys.path[1:] if p != {str(ROOT)!r})]\n"
        "from tilestack.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )

    def ran(*words: str, expected: int) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False, cwd=tmp_path
        )
        assert done.returncode == expected, done.stderr
        return done

    assert json.loads(ran("matrix", "list", "--json", expected=0).stdout)
    assert "no recording in none" in ran("time", "none", expected=5).stderr
    assert "no recording in none" in ran("gate", "--recording", "none", "--base", "none", expected=5).stderr


@pytest.mark.needs("toolchain")
@pytest.mark.long("makes an environment and exports the tuned kernels; the tests above look into an extracted wheel")
def test_an_installation_in_a_fresh_environment(tmp_path: Path) -> None:
    """`pip install .` without network: the packages that it depends on are this environment's."""

    def ran(*words: str | Path, code: int = 0) -> str:
        done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert done.returncode == code, f"{words}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    ran(sys.executable, "-m", "venv", tmp_path / "venv")
    python, command = tmp_path / "venv/bin/python", tmp_path / "venv/bin/tilestack"
    ran(python, "-m", "pip", "install", "-q", "--no-index", "--no-deps", ROOT)
    assert "pip install 'tilestack[compile]'" in ran(command, "verify", ROOT / "kernels_mlir/gelu.mlir", code=4)
    (packages,) = (tmp_path / "venv/lib").glob("python*/site-packages")
    # A path alone: the .pth files in that folder, ours that leads to the checkout among them, are not read.
    (packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    here = ran(sys.executable, "-m", "tilestack", "matrix", "list", "--json")
    assert json.loads(ran(command, "matrix", "list", "--json")) == json.loads(here)
    assert ran(command, "tune", "--check").startswith("0 of ")


def test_a_wheel_of_the_sdist_is_the_wheel_of_the_checkout(wheel: Path, tmp_path: Path) -> None:
    sdist = _build(ROOT, tmp_path, "build_sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    again = tmp_path / "again"
    again.mkdir()
    made = _build(tmp_path / f"tilestack-{VERSION}", again)
    assert made.name == wheel.name
    assert made.read_bytes() == wheel.read_bytes()


def test_the_runtime_of_a_wheel_is_imported_by_its_own_name(installed: Path, tmp_path: Path) -> None:
    code = (
        f"import sys; sys.path[:] = [{str(installed)!r}, *(p for p in sys.path[1:] if p != {str(ROOT)!r})]\n"
        "import cute_runtime as c, toolchain; print(c.__file__, toolchain.__file__, c.include_dirs()[0])"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert all(Path(place).is_relative_to(installed) for place in done.stdout.split())


def test_the_record_lists_every_file(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        record = archive.read(f"tilestack-{VERSION}.dist-info/RECORD").decode()
    assert [row[0] for row in csv.reader(io.StringIO(record))] == names


def test_the_metadata_is_that_of_the_project(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        said = message_from_bytes(archive.read(f"tilestack-{VERSION}.dist-info/METADATA"))
    assert (said["Name"], said["Version"], said["License-Expression"]) == ("tilestack", VERSION, "Apache-2.0")
    assert set(said.get_all("Provides-Extra", [])) == set(PROJECT["optional-dependencies"])
    assert "jinja2>=3.1 ; extra == 'report'" in said.get_all("Requires-Dist", [])
    assert metadata("tilestack")["Name"] == "tilestack"  # what pip and uv read of the checkout's installation


def test_an_editable_wheel_points_at_the_checkout(tmp_path: Path) -> None:
    made = _build(ROOT, tmp_path, "build_editable")
    with zipfile.ZipFile(made) as archive:
        assert archive.read("tilestack.pth").decode() == f"{ROOT}\n"
        assert not [name for name in archive.namelist() if name.endswith(".py")]


def test_a_folder_that_is_listed_and_missing_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tilestack").mkdir()
    (tmp_path / "tilestack" / "__init__.py").touch()
    (tmp_path / "pyproject.toml").write_text('[tool.tilestack]\npackages = ["tilestack"]\nlibrary = ["tuned"]\n')
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"tuned: pyproject\.toml lists it"):
        packaging.build_wheel(str(tmp_path))

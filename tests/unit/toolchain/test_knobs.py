from __future__ import annotations

import ast
import datetime
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from toolchain import knobs
from toolchain.errors import UsageError

PACKAGES = (
    "benchmarks", "ci", "conformance", "examples", "gpt", "kernels_mlir", "kernels_py", "tilestack",
    "toolchain", "tune",
)  # fmt: skip


def reads_environment(path: Path) -> bool:
    """True if a module uses os.environ or os.getenv, however it imported them."""
    names = {"environ", "environb", "getenv", "getenvb"}
    nodes = list(ast.walk(ast.parse(path.read_text())))
    return any(isinstance(n, ast.Attribute) and n.attr in names for n in nodes) or any(
        alias.name in names for n in nodes if isinstance(n, ast.ImportFrom) and n.module == "os" for alias in n.names
    )


def test_only_knobs_reads_the_environment():
    modules = [path for package in PACKAGES for path in sorted((knobs.ROOT / package).rglob("*.py"))]
    assert [str(p.relative_to(knobs.ROOT)) for p in modules if reads_environment(p)] == ["toolchain/knobs.py"]


def test_folders_follow_their_variables(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    monkeypatch.delenv("TILESTACK_CACHE_DIR", raising=False)
    assert knobs.cache_dir() == Path("/xdg/tilestack")
    monkeypatch.setenv("TILESTACK_CACHE_DIR", "relative")
    assert knobs.cache_dir() == Path.cwd() / "relative"
    monkeypatch.setenv("TILESTACK_TOOLCHAIN", "/elsewhere")
    assert knobs.toolchain_dir() == Path("/elsewhere")
    monkeypatch.delenv("TILESTACK_TOOLCHAIN")
    assert knobs.toolchain_dir() == knobs.ROOT / ".toolchain"


@pytest.mark.parametrize(
    ("knob", "folder"), [(knobs.CACHE_DIR, knobs.cache_dir), (knobs.TOOLCHAIN, knobs.toolchain_dir)]
)
def test_a_home_of_nobody_is_an_error(
    knob: knobs.Knob, folder: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(knob.name, "~nobody-of-that-name/x")
    with pytest.raises(UsageError, match=rf"{knob.name}='~nobody-of-that-name/x'(.|\n)*without ~"):
        folder()


def test_without_a_home_the_cache_must_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("TILESTACK_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(UsageError, match=r"no home folder(.|\n)*set TILESTACK_CACHE_DIR"):
        knobs.cache_dir()


def test_a_time_is_one_that_a_date_can_write(monkeypatch: pytest.MonkeyPatch) -> None:
    for good in (0, 1767225600, knobs.LAST_SECOND):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", str(good))
        assert knobs.source_date_epoch() == good
        datetime.datetime.fromtimestamp(good, datetime.UTC)
    for bad in (str(knobs.LAST_SECOND + 1), "9" * 5000, "-1", "today"):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", bad)
        with pytest.raises(UsageError, match="SOURCE_DATE_EPOCH="):
            knobs.source_date_epoch()


def test_jobs(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TILESTACK_JOBS", "7")
    assert knobs.jobs() == 7
    for bad in ("0", "-1", "two", "1.5", "9" * 5000):
        monkeypatch.setenv("TILESTACK_JOBS", bad)
        with pytest.raises(UsageError, match="TILESTACK_JOBS"):
            knobs.jobs()


def test_the_engine_is_ours_before_dockers(monkeypatch: pytest.MonkeyPatch):
    for name in ("TILESTACK_ENGINE", "DOCKER_HOST"):
        monkeypatch.delenv(name, raising=False)
    assert knobs.engine_address() is None
    monkeypatch.setenv("DOCKER_HOST", "unix:///docker")
    monkeypatch.setenv("TILESTACK_ENGINE", "")  # as good as unset
    assert knobs.engine_address() == "unix:///docker"
    monkeypatch.setenv("TILESTACK_ENGINE", "unix:///ours")
    assert knobs.engine_address() == "unix:///ours"


def test_the_debian_mirror_is_the_one_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("TILESTACK_DEBIAN_MIRROR", raising=False)
    assert not knobs.debian_mirror()
    monkeypatch.setenv("TILESTACK_DEBIAN_MIRROR", "http://deb.example/debian")
    assert knobs.debian_mirror() == "http://deb.example/debian"


def test_a_container_gets_the_settings_of_the_network_and_no_others(monkeypatch: pytest.MonkeyPatch):
    for name in list(os.environ):
        monkeypatch.delenv(name)
    assert knobs.network_settings() == {}
    for name in ("https_proxy", "NO_PROXY", "PIP_INDEX_URL", "PATH", "PIP_TARGET", "CC"):
        monkeypatch.setenv(name, name.upper())
    monkeypatch.setenv("http_proxy", "")  # which says: none
    assert knobs.network_settings() == {
        "http_proxy": "",
        "https_proxy": "HTTPS_PROXY",
        "NO_PROXY": "NO_PROXY",
        "PIP_INDEX_URL": "PIP_INDEX_URL",
    }


def test_certificates_are_a_file_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.crt"))
    assert knobs.certificates() is None
    (tmp_path / "ca.crt").touch()
    assert knobs.certificates() == tmp_path / "ca.crt"
    monkeypatch.delenv("SSL_CERT_FILE")
    usual = Path("/etc/ssl/certs/ca-certificates.crt")
    assert knobs.certificates() == (usual if usual.is_file() else None)


def test_which_of_several_processes_this_is(monkeypatch: pytest.MonkeyPatch):
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    assert knobs.process_group() is None
    first, second = (knobs.in_process_group(rank, 2, "29500") for rank in (0, 1))
    groups: list[knobs.ProcessGroup | None] = []
    for environment in (first, second):
        for name in names:
            monkeypatch.setenv(name, environment.get(name, ""))
        groups.append(knobs.process_group())
    meeting = "localhost 29500 "
    assert groups == [knobs.ProcessGroup(0, 2, 0, meeting), knobs.ProcessGroup(1, 2, 1, meeting)]
    monkeypatch.setenv("LOCAL_RANK", "one")
    with pytest.raises(UsageError, match="WORLD_SIZE is 2, and LOCAL_RANK is 'one'"):
        knobs.process_group()
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert knobs.process_group() is None

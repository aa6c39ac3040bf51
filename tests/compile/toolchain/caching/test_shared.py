"""The shared cache in S3, as moto's server answers for it, through s3fs: real requests, checked credentials."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from toolchain.caching.shared import new_keys
from toolchain.knobs import ROOT

LOCK = Path(__file__).with_name("s3.lock")
ACTIONS = 4  # that set_up() does, which the server does not check yet

pytestmark = [
    pytest.mark.long("installs s3fs and moto; tests/unit/toolchain/caching/test_shared.py tries a folder and memory"),
    pytest.mark.needs("network"),
]

SET_UP = """
import boto3, json, sys
where = dict(endpoint_url=sys.argv[1], region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
boto3.client("s3", **where).create_bucket(Bucket="bucket")
iam = boto3.client("iam", **where)
iam.create_user(UserName="ci")
key = iam.create_access_key(UserName="ci")["AccessKey"]
allowed = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
iam.put_user_policy(UserName="ci", PolicyName="all", PolicyDocument=json.dumps(allowed))
print(json.dumps([key["AccessKeyId"], key["SecretAccessKey"]]))
"""

# Makes or finds `count` entries as a compile does, and prints what was counted.
USE = """
import json, sys, time
from toolchain.caching.cache import Cache, key
cache, count = Cache.configured(), int(sys.argv[1])
print("open", flush=True)
if len(sys.argv) > 2:
    sys.stdin.readline()
for number in range(count):
    content = b"%d " % number * 1000
    assert cache.get_or_make(key(str(number)), lambda: content) == content
print(json.dumps(cache.counts.to_json()))
"""

# Flips the last bit of the object of entry 0.
DAMAGE = """
import fsspec
from toolchain.caching.cache import key
files, name = fsspec.filesystem("s3"), key("0")
path = f"bucket/cache/{name[:2]}/{name[2:]}"
raw = bytearray(files.cat_file(path))
raw[-1] ^= 1
files.pipe_file(path, bytes(raw))
"""


class Store(NamedTuple):
    python: Path
    server: subprocess.Popen[bytes]
    settings: dict[str, str]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the packages of s3.lock."""
    folder = tmp_path_factory.mktemp("s3")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    install = ["-m", "pip", "install", "-q", "--require-hashes", "--only-binary", ":all:", "-r", str(LOCK)]
    subprocess.run([str(folder / "bin/python"), *install], check=True)
    return folder / "bin/python"


@pytest.fixture
def store(python: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A server with an empty bucket and one user, and the settings of that user."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    monkeypatch.setenv("INITIAL_NO_AUTH_ACTION_COUNT", str(ACTIONS))
    server = subprocess.Popen(
        [str(python), "-m", "moto.server", "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait_for(f"{address}/moto-api/", server)
        made = subprocess.run([str(python), "-c", SET_UP, address], check=True, capture_output=True, text=True)
        name, secret = json.loads(made.stdout)
        signing, public = new_keys()
        yield Store(python, server, {
            "AWS_ACCESS_KEY_ID": name, "AWS_SECRET_ACCESS_KEY": secret, "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": address, "AWS_EC2_METADATA_DISABLED": "true", "HOME": "/nonexistent",
            "TILESTACK_CACHE_URL": "s3://bucket/cache", "TILESTACK_CACHE_PUBLIC_KEY": public,
            "TILESTACK_CACHE_SIGNING_KEY": signing, "PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin",
        })  # fmt: skip
    finally:
        server.kill()
        server.wait()


def _wait_for(address: str, server: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        assert server.poll() is None, "the server ended"
        try:
            urllib.request.urlopen(address).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    pytest.fail("the server does not answer")


Use = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def use(store: Store, tmp_path: Path) -> Use:
    """Runs USE on a machine with a name, that is, a folder of its own. Settings that are None are left out."""

    def run(machine: str, count: int = 8, code: str = USE, **changed: str | None) -> subprocess.CompletedProcess[str]:
        settings = {**store.settings, "TILESTACK_CACHE_DIR": str(tmp_path / machine), **changed}
        environment = {name: value for name, value in settings.items() if value is not None}
        return subprocess.run(
            [str(store.python), "-c", code, str(count)], env=environment, capture_output=True, text=True, check=False
        )

    return run


READER = {"TILESTACK_CACHE_SIGNING_KEY": None}


def counts(ran: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


def test_machines_that_write_at_once_and_one_that_reads(use: Use) -> None:
    with ThreadPoolExecutor() as pool:
        wrote = [counts(ran) for ran in pool.map(use, ("a", "b", "c", "d"))]
    assert all(each["errors"] == each["damaged"] == each["refused"] == 0 for each in wrote)
    read = counts(use("e", **READER))
    assert (read["shared_hits"], read["misses"], read["trouble"]) == (8, 0, "")


def test_a_flipped_bit_is_made_again_and_replaced(use: Use) -> None:
    counts(use("a"))
    assert use("a", code=DAMAGE).returncode == 0
    found = counts(use("b", **READER))
    assert (found["shared_hits"], found["damaged"], found["misses"]) == (7, 1, 1)
    counts(use("c"))
    assert counts(use("d", **READER))["shared_hits"] == 8


def test_what_another_key_signed_is_refused(use: Use) -> None:
    signing, public = new_keys()
    counts(use("a", TILESTACK_CACHE_SIGNING_KEY=signing, TILESTACK_CACHE_PUBLIC_KEY=public))
    found = counts(use("b", **READER))
    assert (found["shared_hits"], found["refused"], found["misses"]) == (0, 8, 8)


@pytest.mark.parametrize("who", [{}, READER], ids=["writer", "reader"])
@pytest.mark.parametrize("wrong", ["AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID"])
def test_wrong_credentials_are_an_error_at_the_start(use: Use, who: dict[str, None], wrong: str) -> None:
    ran = use("a", **{**who, wrong: "not-that-one"})
    assert ran.returncode != 0 and "open" not in ran.stdout
    assert "UsageError" in ran.stderr and "we may not" in ran.stderr


def test_no_credentials_and_no_bucket_are_errors_at_the_start(use: Use) -> None:
    for changed, said in (
        ({"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}, "we may not"),
        ({"TILESTACK_CACHE_URL": "s3://no-such-bucket/cache"}, "make the bucket"),
    ):
        ran = use("a", **changed)
        assert ran.returncode != 0 and said in ran.stderr, ran.stderr


def test_a_server_that_dies_meanwhile_costs_no_result(store: Store, tmp_path: Path) -> None:
    environment = {**store.settings, "TILESTACK_CACHE_DIR": str(tmp_path)}
    with subprocess.Popen(
        [str(store.python), "-c", USE, "20", "wait"], env=environment, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as running:  # fmt: skip
        assert running.stdout
        assert running.stdout.readline() == "open\n"
        store.server.kill()
        store.server.wait()
        out, err = running.communicate("\n")
    assert running.returncode == 0, err
    found = json.loads(out.splitlines()[-1])
    assert (found["errors"], found["misses"]) == (3, 20)
    assert "Could not connect" in found["trouble"]

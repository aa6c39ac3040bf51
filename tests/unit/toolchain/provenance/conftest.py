from __future__ import annotations

import hashlib
import io
import json
import tarfile
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from toolchain.bundles.bundle import Bundle, Compiled, write
from toolchain.contract.artifact import tile_ir
from toolchain.contract.entry import EntrySpec
from toolchain.pinned.pins import pins
from toolchain.provenance.artefacts import Rules, load_rules
from toolchain.provenance.inventory import Wheel, inventory
from toolchain.provenance.licences import FilePattern, Policy, load_policy

PTXAS = b"\x7fELF the assembler, some other version of it" + bytes(range(64))
HEADER = b"/* a header of the toolkit */\n" * 8
SHARED = b"# anybody's file, as it is in more than one package\n" * 8

FINGERPRINTS = {("mlir", "gelu_f32"): "f1", ("py", "gelu_f32"): "f2"}

LOCK = """\
free-one==1.0 \\
    --hash=sha256:{a} \\
    --hash=sha256:{b}
    # via tilestack (pyproject.toml)
nvidia-fake==13.5 ; sys_platform == 'linux' \\
    --hash=sha256:{c}
    # via
    #   free-one
    #   tilestack (pyproject.toml:dev)
windows-only==2.0 ; sys_platform == 'win32' \\
    --hash=sha256:{d}
    # via free-one
""".format(a="a" * 64, b="b" * 64, c="c" * 64, d="d" * 64)

POLICY = """\
[licences]
bundle = ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"]
depend = ["LicenseRef-NVIDIA-Proprietary", "LGPL-2.1-or-later"]
[words]
"Expat" = "MIT"
"License :: OSI Approved :: MIT License" = "MIT"
"License :: OSI Approved :: Apache Software License" = "Apache-2.0"
[packages.windows-only]
licence = "MIT"
reason = "looked into"
[[files]]
pattern = "*/bin/ptxas"
package = "nvidia-fake"
"""


class PythonInstallation(NamedTuple):
    """An installed environment with its lock and policy."""

    packages: Path
    lock: Path
    policy: Path

    def wheels(self) -> dict[str, Wheel]:
        return inventory(self.lock, self.packages)

    def rules(self) -> Rules:
        return load_rules(self.wheels(), load_policy(self.policy))


def install(packages: Path, name: str, version: str, says: str, files: Mapping[str, bytes]) -> Path:
    """Installs a package as a wheel is: its files, METADATA and RECORD."""
    rows: list[str] = []
    for path, data in files.items():
        (packages / path).parent.mkdir(parents=True, exist_ok=True)
        (packages / path).write_bytes(data)
        digest = urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{path},sha256={digest},{len(data)}")
    info = packages / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n{says}\n\ntext\n")
    described = f"{info.name}/METADATA,sha256={'A' * 43},300"  # of the package itself: nobody's file
    (info / "RECORD").write_text("\n".join([*rows, described, f"{info.name}/RECORD,,"]) + "\n")
    return info


@pytest.fixture
def site(tmp_path: Path) -> PythonInstallation:
    """A package that may be bundled, and one that may not. Both have one file in common."""
    made = PythonInstallation(tmp_path / "site", tmp_path / "requirements.lock", tmp_path / "policy.toml")
    made.lock.write_text(LOCK)
    made.policy.write_text(POLICY)
    install(made.packages, "Free_One", "1.0", "License: Expat", {"free_one.py": SHARED})
    files = {"nv/__init__.py": b"", "nv/bin/ptxas": PTXAS, "nv/include/h.h": HEADER, "nv/same.py": SHARED}
    install(made.packages, "nvidia-fake", "13.5", "License-Expression: LicenseRef-NVIDIA-Proprietary", files)
    return made


@pytest.fixture
def policy() -> Policy:
    free = frozenset({"depend", "bundle"})
    return Policy({"MIT": free, "Apache-2.0": free}, {}, {}, (FilePattern("*/bin/ptxas", "nvidia-fake"),))  # pyright: ignore[reportArgumentType]


def tar(files: Mapping[str, bytes], compression: str = "") -> bytes:
    """A tar archive of these files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=f"w:{compression}") as archive:  # type: ignore[call-overload]
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def image(*layers: bytes) -> bytes:
    """An image as `docker save` writes it."""
    names = [f"{i}/layer.tar" for i in range(len(layers))]
    manifest = json.dumps([{"Config": "config.json", "RepoTags": ["x:1"], "Layers": names}]).encode()
    return tar({**dict(zip(names, layers, strict=True)), "config.json": b"{}", "manifest.json": manifest})


def compiled(symbol: str, source: str = "mlir") -> Compiled:
    spec = EntrySpec(symbol, "gelu", source, "f32", grid=("M", "1", "1"))
    name = f"{source}/{symbol}".encode()
    return Compiled(
        spec, tile_ir(b"bytecode of " + name, "13.3"), {"sm_90": b"cubin of " + name}, FINGERPRINTS[source, symbol]
    )


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    """Two entries of two sources, compiled by the pinned tools."""
    tools = {name: {"version": "13.5", "sha256": pins().tools[name].expected()} for name in ("tileiras", "ptxas")}
    return write(tmp_path / "bundle", [compiled("gelu_f32"), compiled("gelu_f32", "py")], tools)


Write = Callable[[str, bytes], Path]


@pytest.fixture
def file(tmp_path: Path) -> Write:
    """Writes a file."""

    def make(name: str, data: bytes) -> Path:
        path = tmp_path / "made" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        return path

    return make

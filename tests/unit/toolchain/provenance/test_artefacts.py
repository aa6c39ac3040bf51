from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import pytest

from toolchain.errors import PolicyError
from toolchain.provenance.archives import members
from toolchain.provenance.artefacts import check_artefact, load_rules, require_clean
from toolchain.provenance.inventory import inventory
from toolchain.provenance.licences import load_policy

from .conftest import HEADER, POLICY, PTXAS, SHARED, PythonInstallation, Write, image, tar

META = "Metadata-Version: 2.4\nName: {}\nVersion: {}\n{}\n\n"


def wheel(path: Path, files: dict[str, bytes], says: str = "License-Expression: MIT") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
        archive.writestr("ours-1.dist-info/METADATA", META.format("ours", "1", says))
    return path


def test_a_file_of_a_package_that_may_not_be_bundled_is_found_by_its_content(
    site: PythonInstallation, tmp_path: Path
) -> None:
    path = wheel(tmp_path / "ours.whl", {"ours/data.bin": HEADER, "ours/__init__.py": b"", "ours/same.py": SHARED})
    (found,) = check_artefact(path, site.rules())
    assert (found.artefact, found.file, found.package) == (path, "ours/data.bin", "nvidia-fake 13.5, nv/include/h.h")
    assert "sha256" in found.why


@pytest.mark.parametrize("pack", [lambda data: data, gzip.compress, lambda data: image(tar({"a": b"a"}), data)])
def test_it_is_found_by_its_path_whatever_its_version(site: PythonInstallation, file: Write, pack: object) -> None:
    data = pack(tar({"usr/bin/ptxas": b"another version", "usr/bin/ptxas-notes": b""}))  # type: ignore[operator]
    (found,) = check_artefact(file("a.tar", data), site.rules())
    assert found.file.endswith("usr/bin/ptxas") and found.package == "nvidia-fake" and "*/bin/ptxas" in found.why


def test_it_is_found_in_a_layer_that_a_later_layer_hides(site: PythonInstallation, file: Write) -> None:
    path = file("image.tar", image(tar({"opt/tool": PTXAS}), gzip.compress(tar({"opt/.wh.tool": b""}))))
    with pytest.raises(PolicyError) as caught:
        require_clean(path, site.rules())
    said = str(caught.value)
    assert f"{path}: 0/layer.tar!opt/tool: of nvidia-fake 13.5, nv/bin/ptxas: the same sha256" in said
    assert "1 findings" in said and "next: leave these files out" in said


def test_a_folder(site: PythonInstallation) -> None:
    found = {finding.file for finding in check_artefact(site.packages, site.rules())}
    assert found == {"nv/bin/ptxas", "nv/include/h.h", "nvidia_fake-13.5.dist-info/METADATA"}


def test_another_version_is_known_by_its_metadata(site: PythonInstallation, file: Write) -> None:
    says = "License-Expression: LicenseRef-NVIDIA-Proprietary"
    data = tar({"x/nvidia_other-9.dist-info/METADATA": META.format("nvidia-other", "9", says).encode()})
    (found,) = check_artefact(file("a.tar", data), site.rules())
    assert found.package == "nvidia-other 9" and "depended on, not bundled" in found.why


@pytest.mark.parametrize("name", ["p-1.dist-info/METADATA", "p-1/PKG-INFO"])
def test_an_unknown_licence_is_found(site: PythonInstallation, file: Write, name: str) -> None:
    for says in ("License: my own terms", "Summary: none at all"):
        data = tar({name: META.format("p", "1", says).encode()})
        (found,) = check_artefact(file("a.tar", data), site.rules())
        assert (found.file, found.package) == (name, "p 1") and "its licence is unknown" in found.why
    fine = tar({name: META.format("p", "1", "License: Expat").encode()})
    assert check_artefact(file("b.tar", fine), site.rules()) == []


def test_debian_packages(site: PythonInstallation, file: Write) -> None:
    status = (
        "Package: bash\nStatus: install ok installed\nSection: shells\nVersion: 5\nDescription: a shell\n"
        " Section: non-free/of-the-text\n\n"
        "Package: nvidia-cuda-toolkit\nStatus: install ok installed\nSection: non-free/devel\nVersion: 12\n"
    )
    layer = tar({
        "var/lib/dpkg/status": status.encode(),
        "usr/share/wheels/p.whl": tar({"p-1.dist-info/METADATA": META.format("p", "1", "Summary: unclear").encode()}),
        "usr/local/p-1.dist-info/METADATA": META.format("p", "1", "Summary: unclear").encode(),
    })  # fmt: skip
    lists = tar({"var/lib/dpkg/info/p.list": b"/.\n/usr\n/usr/share/wheels/p.whl\n"})
    ours, debian = check_artefact(file("image.tar", image(layer, lists)), site.rules())
    assert ours.file == "0/layer.tar!usr/local/p-1.dist-info/METADATA"
    assert (debian.package, debian.why) == ("nvidia-cuda-toolkit 12", "its section is non-free/devel")


def test_names_in_debians_lists_need_not_be_text(site: PythonInstallation, file: Write) -> None:
    unclear = META.format("p", "1", "Summary: unclear").encode()
    name = b"usr/caf\xe9/p-1.dist-info/METADATA"
    layer = tar({name.decode(errors="surrogateescape"): unclear, "var/lib/dpkg/info/p.list": b"/" + name + b"\n"})
    assert check_artefact(file("image.tar", image(layer)), site.rules()) == []


def test_what_a_package_took_from_others_is_not_its_own(site: PythonInstallation, file: Write) -> None:
    path = file("a.tar", tar({"h": HEADER, "t": PTXAS}))
    assert len(check_artefact(path, site.rules())) == 2
    reviewed = '[packages.nvidia-fake]\nlicence = "LicenseRef-NVIDIA-Proprietary"\nreason = "r"\nothers = ["nv/inc*"]\n'
    site.policy.write_text(POLICY + reviewed)
    assert [finding.file for finding in check_artefact(path, site.rules())] == ["t"]


def test_an_archive_that_cannot_be_looked_into_is_not_given_away(site: PythonInstallation, file: Write) -> None:
    (found,) = check_artefact(file("a.tar", tar({"data.gz": gzip.compress(HEADER)[:-9]})), site.rules())
    assert found.file == "data.gz" and "cannot be looked into" in found.why
    (found,) = check_artefact(file("b.tar", tar({"data.gz": gzip.compress(HEADER)})), site.rules())
    assert found.package == "nvidia-fake 13.5, nv/include/h.h"


def test_a_clean_artefact(site: PythonInstallation, tmp_path: Path) -> None:
    path = wheel(tmp_path / "ours.whl", {"ours/__init__.py": b"", "ours/ptxas.py": b"# calls bin/ptxas\n"})
    assert len(list(members(path))) == 3
    require_clean(path, site.rules())


@pytest.mark.needs("toolchain")
def test_the_real_tools_are_known(file: Write) -> None:
    from toolchain.pinned.tools import tool

    rules = load_rules(inventory(), load_policy())
    for name in ("ptxas", "tileiras"):
        (found,) = check_artefact(file("a.tar", tar({"renamed": tool(name).path.read_bytes()})), rules)
        assert found.package.startswith("nvidia-cuda-")

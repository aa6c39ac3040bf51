from __future__ import annotations

from email.message import Message

import pytest
from license_expression import get_spdx_licensing

from toolchain.errors import PolicyError, ToolchainError
from toolchain.provenance.inventory import inventory
from toolchain.provenance.licences import BOTH, DEPEND, licences, load_policy

from .conftest import POLICY, PythonInstallation, install


def metadata(*lines: tuple[str, str]) -> Message:
    made = Message()
    for name, value in lines:
        made[name] = value
    return made


MIT_WORDS = ("Classifier", "License :: OSI Approved :: MIT License")
APACHE_WORDS = ("Classifier", "License :: OSI Approved :: Apache Software License")


@pytest.mark.parametrize(
    ("lines", "expression", "source"),
    [
        ([("License-Expression", "MIT"), APACHE_WORDS], "MIT", "License-Expression"),
        ([("License", "Expat"), APACHE_WORDS], "MIT", "License"),
        ([("License", "MIT OR Apache-2.0")], "MIT OR Apache-2.0", "License"),
        ([("License", "Copyright (c) 2020\n  me and others"), MIT_WORDS], "MIT", "classifier"),
        ([MIT_WORDS, ("Classifier", "Topic :: Software Development")], "MIT", "classifier"),
    ],
)
def test_where_a_licence_is_found(
    site: PythonInstallation, lines: list[tuple[str, str]], expression: str, source: str
) -> None:
    found = load_policy(site.policy).licence("p", "1", metadata(*lines))
    assert (found.expression, found.source, found.use) == (expression, source, BOTH)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "p 1: its licence is unknown: METADATA says nothing"),
        ([("License", "as you like")], "METADATA says as you like"),
        ([MIT_WORDS, APACHE_WORDS], "METADATA says License :: OSI Approved :: MIT License; License :: OSI Approved"),
        ([MIT_WORDS, ("Classifier", "License :: Free To Use")], "unknown"),
        (
            [("License-Expression", "MIT AND GPL-3.0-only")],
            "p 1: License-Expression: .* not mention the licence GPL-3.0",
        ),
        ([("License-Expression", "()")], r"p 1: License-Expression: '\(\)' is not a licence expression"),
        ([("License-Expression", "MIT AND (")], "p 1: License-Expression: 'MIT AND \\(' is not a licence expression"),
    ],
)
def test_what_is_unclear_is_an_error(site: PythonInstallation, lines: list[tuple[str, str]], said: str) -> None:
    with pytest.raises(PolicyError, match=said) as caught:
        load_policy(site.policy).licence("p", "1", metadata(*lines))
    assert "policy.toml" in str(caught.value.hint)


def test_what_an_expression_allows(site: PythonInstallation) -> None:
    policy = load_policy(site.policy)
    assert policy.use("MIT AND Apache-2.0 WITH LLVM-exception") == BOTH
    assert policy.use("MIT AND LGPL-2.1-or-later") == DEPEND
    assert policy.use("MIT OR LGPL-2.1-or-later") == BOTH
    assert policy.use("LGPL-2.1-or-later OR (MIT AND LicenseRef-NVIDIA-Proprietary)") == DEPEND
    with pytest.raises(PolicyError, match="empty"):
        policy.use("")


def test_every_unknown_licence_is_listed(site: PythonInstallation) -> None:
    assert licences(site.wheels(), load_policy(site.policy))["nvidia-fake"].use == DEPEND
    site.lock.write_text(site.lock.read_text() + "odd==1 \\\n    --hash=sha256:" + "e" * 64 + "\ngone==1\n")
    install(site.packages, "odd", "1", "License: of my own", {})
    with pytest.raises(PolicyError) as caught:
        licences(site.wheels(), load_policy(site.policy))
    assert "odd 1: its licence is unknown: METADATA says of my own" in str(caught.value)
    assert "gone 1: its licence is unknown: METADATA says nothing (it is not installed here)" in str(caught.value)


def test_a_reviewed_package(site: PythonInstallation) -> None:
    site.policy.write_text(POLICY + '[packages.free-one]\nlicence = "MIT"\nuse = ["depend"]\nreason = "so"\n')
    found = licences(site.wheels(), load_policy(site.policy))["free-one"]
    assert (found.source, found.use) == ("policy.toml", DEPEND)
    site.policy.write_text(POLICY + '[packages.of-old]\nlicence = "MIT"\nreason = "so"\n')
    with pytest.raises(PolicyError, match="of-old"):
        licences(site.wheels(), load_policy(site.policy))


def test_a_package_that_may_not_be_bundled_must_be_there_to_know_its_files(site: PythonInstallation) -> None:
    site.policy.write_text(POLICY.replace('licence = "MIT"', 'licence = "LGPL-2.1-or-later"'))
    with pytest.raises(ToolchainError, match="windows-only"):
        licences(site.wheels(), load_policy(site.policy))


@pytest.mark.parametrize(
    "text",
    ["[", "", POLICY.replace("[words]", "[wards]"), POLICY.replace('"looked into"', '" "'),
     POLICY.replace('reason = "looked into"\n', ""), POLICY.replace("pattern", "patern"),
     POLICY + '[packages.x]\nlicence = "MIT"\nreason = "y"\nuse = ["sell"]\n'],
)  # fmt: skip
def test_a_damaged_policy_is_named(site: PythonInstallation, text: str) -> None:
    site.policy.write_text(text)
    with pytest.raises(PolicyError, match=r"policy\.toml"):
        load_policy(site.policy)


def test_our_policy_names_licences_that_there_are() -> None:
    known = get_spdx_licensing()
    policy = load_policy()
    for name in policy.licences:
        if not name.startswith("LicenseRef-"):
            assert known.validate(name).errors == [], name
    assert {name for words in policy.words.values() for name in [words]} <= set(policy.licences)


@pytest.mark.needs("toolchain")
def test_every_licence_of_the_lock_is_known() -> None:
    wheels = inventory()
    found = licences(wheels, load_policy())
    assert set(found) == set(wheels) and len(found) > 40
    bundled = {name for name, row in found.items() if "bundle" in row.use}
    assert {"xdsl", "cuda-tile"} <= bundled
    assert not [name for name in bundled if name.startswith("nvidia-")]

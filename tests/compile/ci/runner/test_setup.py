"""Set-up in a container of Debian, twice, then with a driver that is not the real one; there is no GPU, no network and
no systemd."""

from __future__ import annotations

import re

import pytest

from toolchain.knobs import ROOT
from toolchain.native.engine import Container, Engine
from toolchain.native.images import image

pytestmark = [
    pytest.mark.needs("engine", "llvm-images"),
    pytest.mark.long(
        "starts a container; tests/unit/ci/runner/test_setup.py looks at the same steps without doing them"
    ),
]
SETUP = "python3 -m ci.runner setup --repository owner/name --runner h200"
# Round 4 is the hook, as the user of jobs, in what was installed.
SCRIPT = f"""\
cd /checkout
for round in 1 2; do echo "round $round"; {SETUP} 2>&1; echo "code $?"; done
mkdir -p /etc/cdi
printf '#!/bin/sh\\necho libcuda.so.580.159.04 > /etc/cdi/nvidia.yaml\\n' > /usr/bin/nvidia-ctk
printf '#!/bin/sh\\necho 0, no real GPU, 580.159.04\\n' > /usr/bin/nvidia-smi
chmod +x /usr/bin/nvidia-smi /usr/bin/nvidia-ctk
echo "round 3"; {SETUP} 2>&1; echo "code $?"
echo "round 4"; setpriv --reuid tilestack-runner --regid tilestack-runner --clear-groups \
  /usr/local/lib/tilestack-runner/ci/runner/job-started.sh 2>&1; echo "code $?"
"""


def test_set_up_twice() -> None:
    container = Container(image("llvm-22").digest, {ROOT: ("/checkout", "ro")}, user="0:0")
    said = Engine.find().run(container, ["sh", "-c", SCRIPT])
    _, first, second, third, hook = re.split(r"^round \d\n", said, flags=re.MULTILINE)
    before, again, fake = (_states(part) for part in (first, second, third))
    made = {"user", "program", "settings", "unit"}
    assert {name for name, state in before.items() if state == "done"} == made
    assert {name for name, state in again.items() if state == "ok"} == {"system", "packages", *made}
    for states in (before, again):
        assert {name for name, state in states.items() if state == "missing"} == {
            "driver", "container toolkit", "GitHub's runner", "systemd",
        }  # fmt: skip
        assert states["CDI"] == "not run"
    assert fake["container toolkit"] == "ok" and fake["CDI"] == "done"
    assert "next: add NVIDIA's package archive" in first and "next: give a copy of it: --archive FILE" in first
    assert first.count("code 4") == second.count("code 4") == 1
    assert "code 7" in hook and "error: this GPU is not fit for a job" in hook


def _states(text: str) -> dict[str, str]:
    found = re.findall(r"^(ok|done|would|missing|not run) +(\S.*)$", text, re.MULTILINE)
    return {name: state for state, name in found}

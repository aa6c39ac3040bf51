from __future__ import annotations

import subprocess
import sys

from ci.runner.pool import Rules, text
from ci.runner.simulate import JOBS, simulate
from toolchain.knobs import ROOT


def test_three_of_ten_runners_fail_in_different_ways_and_every_job_passes() -> None:
    results, pool, seconds = simulate(Rules.load())
    assert len(results) == JOBS and all(result.code == 0 for result in results)
    anew = {result.lost[0][0]: result for result in results if result.lost}
    assert set(anew) == {"gpu-3", "gpu-5", "gpu-8"}
    for lost, result in anew.items():
        assert result.runner not in ("", lost)
    members = {member.runner.name: member for member in pool.members}
    assert members["gpu-3"].state == "out" and "fallen off the bus" in members["gpu-3"].why
    assert members["gpu-3"].back == "repair it, then python3 -m ci.runner back GPU"
    assert members["gpu-8"].why == "lost: it said nothing for 180 s"
    assert members["gpu-5"].state == "free" and members["gpu-5"].done > 0
    assert [what for _, what in pool.moves if what.startswith("gpu-5")] == [
        "gpu-5 is out of the pool: lost: its process ended with 255",
        "gpu-5 is out of the pool: lost: ssh: connect to host: No route to host",
        "gpu-5 is back in the pool",
    ]
    least = sum(float(result.job.command.split()[1]) for result in results) / 10
    assert least < seconds < 1.6 * least
    assert sum(member.done for member in pool.members) == JOBS


def test_the_command_prints_the_table() -> None:
    command = [sys.executable, "-m", "ci.runner", "pool", "--simulate"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    results, pool, _ = simulate(Rules.load())
    assert said.endswith("\n".join(["", *text(results, pool), ""]))
    assert said.partition("\n| after")[2].strip() in (ROOT / "docs/runner.md").read_text()

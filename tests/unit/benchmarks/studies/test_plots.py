"""benchmarks/studies/plots.py: the plots in the repository are those of the results beside them."""

import json

import pytest

from benchmarks.studies import plots

READ = {path.stem: json.loads(path.read_text()) for path in plots.RESULTS.glob("*.json")}
DRAWN = {
    "one-op": lambda: plots.one_op(READ["one-op"]),
    "ablation-forward": lambda: plots.ablation(READ["ablation"], "forward"),
    "ablation-decode": lambda: plots.ablation(READ["ablation"], "decode"),
    "depth": lambda: plots.depth(READ["depth"]),
    "deploy": lambda: plots.deploy(READ["deploy"]),
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_plot_shows_the_results(name):
    assert DRAWN[name]().render() == (plots.RESULTS / f"{name}.svg").read_text()


def test_bars_are_as_long_as_their_values():
    picture = plots.bars("title", "subtitle", [("group", [("a", 1.0, "one", "red"), ("b", 4.0, "four", "blue")])])
    widths = [float(part.split('width="')[1].split('"')[0]) for part in picture.parts if part.startswith("<rect")]
    assert widths == [plots.BARS / 4, plots.BARS]

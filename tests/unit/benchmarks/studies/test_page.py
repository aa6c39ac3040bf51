"""benchmarks/studies/page.py: the tables of docs/studies.md are those of the results."""

from benchmarks.studies import page


def test_the_page_has_the_tables_of_the_results():
    text = page.PAGE.read_text()
    assert page.page(text) == text
    assert text.count("<!-- end -->") == 3


def test_the_fastest_variant_is_shown_with_the_slowest_beside_it():
    row = {"op": "gelu", "language": "cuda", "lines": 9, "share": 0.5, "spread": 0.01, "error": 1e-3}
    rows = [{**row, "us": 4.0}, {**row, "us": 2.0}]
    made = page.one_op({"rows": rows}, [{"op": "gelu", "language": "cuda", "seconds": 0.25}])
    assert made.splitlines()[2] == "| gelu, cuda | 9 | 0.25 | 2.0 | 50% | 1% | 4.0 | 1.0e-03 |"

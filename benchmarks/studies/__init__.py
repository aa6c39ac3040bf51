"""Studies: longer questions than a benchmark answers, each with its script, data and plot. See docs/studies.md."""

"""Benchmarks that a maintainer asks for in a pull request, by `ci/bench.toml`: docs/ci.md."""

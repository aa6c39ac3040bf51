"""Test suites that somebody else wrote, run on our tools: `nox -s suites -- cutile --mirror FOLDER`.

A suite is a repository at a pinned commit (suites.toml). It is checked out under build/suites, run in an environment of
its own, and what became of each test is written to a page of the documentation. Nothing of it enters this repository.
"""

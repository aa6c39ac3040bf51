from __future__ import annotations

import os
import subprocess
import sys

import pytest

from toolchain.native import owner


def test_a_process_is_gone_once_it_has_ended():
    code = "from toolchain.native import owner; print(owner.this_process(), flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdin and other.stdout
        name = other.stdout.readline().strip()
        assert not owner.is_gone(name)
        other.communicate("\n")
    assert owner.is_gone(name)
    assert not owner.is_gone(owner.this_process())


def test_a_later_process_of_the_same_number_is_another():
    where, _, began = owner.this_process().rpartition(" ")
    assert where.endswith(f" {os.getpid()}")
    assert owner.is_gone(f"{where} {int(began) - 1}")


@pytest.mark.parametrize("seen", ["nothing", "when it began"])
def test_another_users_process_is_there_though_proc_hides_it(monkeypatch: pytest.MonkeyPatch, seen: str):
    def refuse(pid: int, number: int) -> None:
        assert (pid, number) == (os.getpid(), 0)
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    name = owner.this_process()
    if seen == "nothing":
        monkeypatch.setattr(owner, "_began", lambda _: None)
    assert not owner.is_gone(name)


def test_a_process_whose_begin_cannot_be_read_is_not_known_to_be_gone(monkeypatch: pytest.MonkeyPatch):
    name = owner.this_process()
    monkeypatch.setattr(owner, "_began", lambda _: None)
    assert not owner.is_gone(name)


@pytest.mark.parametrize("part", ["boot", "namespace"])
def test_nothing_is_known_of_processes_elsewhere(part: str):
    boot, namespace, _, _ = owner.this_process().split()
    here = {"boot": boot, "namespace": namespace}
    elsewhere = here | {part: "another"}
    assert owner.is_gone(" ".join([*here.values(), "999999999", "1"]))  # no such process
    assert not owner.is_gone(" ".join([*elsewhere.values(), "999999999", "1"]))


@pytest.mark.parametrize("name", ["", "x", "a b c d e"])
def test_what_is_no_name_of_ours_is_not_known_to_be_gone(name: str):
    assert not owner.is_gone(name)


def test_a_name_with_spaces_and_parentheses_is_read_past(tmp_path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "7").mkdir()
    fields = " ".join(str(n) for n in range(4, 53))
    (tmp_path / "7/stat").write_text(f"7 (a) b (c) S {fields}\n")
    monkeypatch.setattr(owner, "_PROC", tmp_path)
    assert owner._began(7) == "22"
    assert owner._began(8) is None

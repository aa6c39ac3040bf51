"""An output beside what a recording kept of the right one."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from tilestack.own.recording import Expected, Recording
from tilestack.own.sampled import MOST, judge, sample
from toolchain.errors import ConformanceError

from .conftest import MakeRecording


def test_all_of_a_small_output_is_kept_and_of_a_large_one_places_from_everywhere() -> None:
    assert sample(5).tolist() == [0, 1, 2, 3, 4]
    places = sample(20 * MOST)
    assert len(places) == MOST and places[0] == 0 and places[-1] < 20 * MOST
    assert np.diff(places).max() < 100  # no part is left out: on average every 20th


def _kept(recording: Recording, exact: np.ndarray[tuple[int, ...], np.dtype[np.generic]], bound: float) -> Expected:
    data = exact.tobytes()
    name = hashlib.sha256(data).hexdigest()
    (recording.root / "files" / name).write_bytes(data)
    digest = hashlib.sha256(exact.astype(np.int32).tobytes()).hexdigest() if exact.dtype == np.int64 else ""
    return Expected(name, bound, digest)


def test_within_the_bound_passes_and_names_the_worst_element(recorded: MakeRecording) -> None:
    recording = recorded("one")
    kept = _kept(recording, np.zeros(6), 0.5)
    result = np.zeros((2, 3), np.float32)
    result[1, 2] = 0.25
    assert (judge("out", result, kept, recording).share, judge("out", result, kept, recording).worst) == (0.5, "(1, 2)")
    result[0, 1] = 0.75
    with pytest.raises(ConformanceError, match=r"off by 0.75 at \(0, 1\), allowed 0.5"):
        judge("out", result, kept, recording)


def test_an_element_that_nobody_wrote_is_found_in_a_large_output_too(recorded: MakeRecording) -> None:
    recording, size = recorded("one"), 4 * MOST
    kept = _kept(recording, np.zeros(len(sample(size))), 1.0)
    result = np.zeros(size, np.float32)
    result[np.setdiff1d(np.arange(size), sample(size))[0]] = np.nan
    with pytest.raises(ConformanceError, match="1 of 1048576 elements are not finite or not written"):
        judge("out", result, kept, recording)


def test_integers_are_equal_everywhere(recorded: MakeRecording) -> None:
    recording, exact = recorded("one"), np.arange(4, dtype=np.int64)
    kept = _kept(recording, exact, 0.0)
    assert judge("out", exact.astype(np.int32), kept, recording).error == 0
    with pytest.raises(ConformanceError, match="off by 1 at"):
        judge("out", (exact + 1).astype(np.int32), kept, recording)
    with pytest.raises(ConformanceError, match="its integers are not those of the reference"):
        judge("out", exact.astype(np.int32), Expected(kept.exact, 0.0, "0" * 64), recording)

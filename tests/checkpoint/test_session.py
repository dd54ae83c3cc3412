"""A fit that goes on from its checkpoint is the fit that was not interrupted."""

import json
import math
import os
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from rich.progress import Progress

from checkpoint.conftest import refuse
from dplasso import DPFrankWolfeClassifier, DPLassoClassifier, DPLogisticRegression
from dplasso.checkpoint import fit_with_checkpoints, read_checkpoint, resume_fit
from dplasso.checkpoint import session as module
from dplasso.errors import CheckpointError

STEPS = 60


def model(**options):
    return DPFrankWolfeClassifier(**({"epsilon": 2.0, "n_iter": STEPS} | options))


def test_it_is_written_when_due_and_at_the_end(data, path, monkeypatch):
    clock, written = [0.0], []
    original = module.write_checkpoint
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])

    def write(checkpoint, *rest, **options):
        written.append((clock[0], len(checkpoint.released), int(checkpoint.state.get("done", 0))))
        original(checkpoint, *rest, **options)

    monkeypatch.setattr(module, "write_checkpoint", write)

    def move(bar, task, *, completed, **_):
        clock[0] = completed / 10

    monkeypatch.setattr(Progress, "update", move)
    fit_with_checkpoints(model(verbose=1), *data, path, seconds=2.0)
    # Between chunks of one step, a tenth of a second each by this clock; the bar moves first.
    # First before the counts, then with them; at the end with the vertices as a release.
    assert written == [(0.0, 0, 0), (0.0, 1, 0), (2.0, 1, 21), (4.0, 1, 41), (6.0, 2, 0)]


def test_it_stays_in_its_place_if_the_process_goes_to_another_folder(data, path, monkeypatch):
    monkeypatch.chdir(path.parent)
    (path.parent / "elsewhere").mkdir()
    original, written = module.write_checkpoint, []

    def write(checkpoint, *rest, **options):
        original(checkpoint, *rest, **options)
        written.append(checkpoint.place)
        if len(written) == 20:
            os.chdir("elsewhere")

    monkeypatch.setattr(module, "write_checkpoint", write)
    fit_with_checkpoints(model(), *data, path.name, seconds=0)
    # Else the fit could be resumed from there and from here, to two models.
    assert read_checkpoint(path).place == written[-1]


class TestRefused:
    """One sentence, and nothing is drawn or changed."""

    @pytest.fixture
    def begun(self, data, path, killed):
        killed(model(), data, path, 20)
        return path

    def refuse(self, estimator, data, path, *known):
        assert str(path) in refuse(estimator, data, path, *known)

    @pytest.mark.filterwarnings("ignore::dplasso.errors.PrivacyLeakWarning")
    def test_other_parameters(self, data, begun):
        other = {"epsilon": 2.5, "delta": 1e-7, "l1_radius": 9.0, "n_iter": STEPS + 1}
        other |= {"feature_bound": 2.0, "neighbors": "replace-one", "fit_intercept": False}
        other |= {"mechanism": "paper", "solver": "standard"}
        other |= {"selector": "noisy-max", "drift_tol": None}
        for name, value in other.items():
            self.refuse(model(**{name: value}), data, begun, f"with the parameter {name} ")
        for name, value in (("random_state", 1), ("classes", ["no", "yes"])):
            self.refuse(model(**{name: value}), data, begun, "another privacy statement")
        # The others cannot matter.
        assert set(module._NOT_STORED) == {"random_state", "n_jobs", "verbose", "ledger"}

    @pytest.mark.parametrize("kind", ["drawn", "dense"])
    def test_another_prior(self, kind, data, path, killed):
        def make(prior):
            if kind == "dense":
                return DPLogisticRegression(prior=prior)
            return DPLassoClassifier(20.0, max_weights=15, prior=prior)

        one, other = np.arange(40.0), np.arange(40.0) + 1e-9
        killed(make(one), data, path, 4)
        words = "a fit with the prior an array of weights, all 40 columns in their"
        for prior in (other, None):
            self.refuse(make(prior), data, path, words)
        resumed = resume_fit(make(one.tolist()), *data, path)
        assert read_checkpoint(path).is_complete
        assert resumed.model_.prior.weights.tolist() == [one.tolist()]

    def test_other_data(self, data, begun):
        X, y = data
        frame = pd.DataFrame(X.toarray(), columns=[f"c{k}" for k in range(40)])
        never = np.where(y == "no", "never", y)
        self.refuse(model(), (X[:, 1:], y), begun, "number of columns 40, and this fit has 39")
        self.refuse(model(), (X, never), begun, "the labels 'no' and 'yes', and this fit has")
        self.refuse(model(), (frame, y), begun, "the column names none, and this fit has")

    def test_another_version(self, data, begun, monkeypatch):
        monkeypatch.setattr("dplasso.files.archive.program", lambda: "dplasso 9.9")
        module.write_checkpoint(read_checkpoint(begun), begun)
        self.refuse(model(), data, begun, "the program dplasso 9.9, and this fit has dplasso")

    def test_nothing_to_resume(self, data, path):
        self.refuse(model(), data, path, "No such file", FileNotFoundError)
        fitted = fit_with_checkpoints(model(), *data, path)
        fitted.save(path)
        self.refuse(model(), data, path, "not a dplasso checkpoint file")

    def test_a_checkpoint_that_is_needed_still(self, data, begun, monkeypatch):
        content = begun.read_bytes()
        with pytest.raises(FileExistsError, match="exists already"):
            fit_with_checkpoints(model(), *data, begun)
        assert begun.read_bytes() == content
        moves = []

        def move(*_, **__):
            moves.append(1)
            if len(moves) == 1:
                self.refuse(model(), data, begun, "in use by another process")
                with pytest.raises(CheckpointError, match="in use"):
                    fit_with_checkpoints(model(), *data, begun, overwrite=True)

        monkeypatch.setattr(Progress, "update", move)
        fit_with_checkpoints(model(verbose=1), *data, begun, overwrite=True)
        assert moves
        assert read_checkpoint(begun).is_complete

    def test_wrong_seconds_and_a_missing_folder(self, data, path, tmp_path):
        for seconds in (-1.0, math.nan):
            with pytest.raises(ValueError, match="must be 0 or more"):
                fit_with_checkpoints(model(), *data, path, seconds=seconds)
        with pytest.raises(FileNotFoundError, match="no folder"):
            fit_with_checkpoints(model(), *data, tmp_path / "none" / "c")


def test_a_checkpoint_holds_nothing_of_the_data_but_the_transcript(path, monkeypatch):
    """Same transcript, other records and another number of them: the same bytes."""
    contents, given = [], {"n_iter": 1, "fit_intercept": False, "n_records": 40, "random_state": 0}
    for rows in (30, 47):
        rng = np.random.default_rng(rows)
        X = sp.random_array((rows, 12), density=0.5, format="csr", rng=rng, dtype=np.float32)
        y = np.arange(rows) % 2
        path.unlink(missing_ok=True)
        taken = fit_with_checkpoints(model(**given), X, y, path)
        stored = read_checkpoint(path)
        chosen = type(taken.transcript_)(np.array([3]), np.array([1], dtype=np.int8))
        (entry,) = stored.released.entries
        drawn = replace(entry.release, vertex=chosen.vertex, sign=chosen.sign)
        released = replace(stored.released, entries=(replace(entry, release=drawn),))
        module.write_checkpoint(replace(stored, released=released), path)
        contents.append(path.read_bytes())
    assert contents[0] == contents[1]
    header = json.loads(np.load(path, allow_pickle=False)["header"].tobytes())
    assert "random_state" not in header["params"]
    assert "release the model instead" in header["about"]

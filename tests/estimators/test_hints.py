"""Remarks on columns before a fit: raw numbers, and names taken from data."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csc_array, csr_array

from dplasso import DPFrankWolfeClassifier, DPLassoClassifier, DPLogisticRegression, PrivateSearch
from dplasso.data.blocks import matrix_source
from dplasso.data.store import write_store
from dplasso.errors import NoiseWarning, PrivacyLeakWarning
from dplasso.estimators import fitting
from dplasso.estimators.fitting import first_entries, raw_numbers, warn_of_undeclared_names

RNG = np.random.default_rng(0)
WARDS = (RNG.random((300, 4)) < 0.5).astype(float)
AGES = RNG.integers(18, 95, (300, 1)).astype(float)
RAW = np.hstack([WARDS, AGES])
LOOP, LOGISTIC = DPFrankWolfeClassifier().get_params(), DPLogisticRegression().get_params()
Y = (AGES[:, 0] > 50).astype(int)


class TestRawNumbers:
    @pytest.mark.parametrize("kind", [np.asarray, csr_array, csc_array])
    def test_an_age_is_noticed(self, kind):
        assert "Column 4 (from 0) exceeds the bound 1" in raw_numbers(
            first_entries(kind(RAW)), LOOP
        )
        assert "Column 4 (from 0) has so large entries" in raw_numbers(
            first_entries(kind(RAW)), LOGISTIC
        )
        names = np.array([*"abcd", "age"], dtype=object)
        assert "Column 'age'" in raw_numbers(first_entries(kind(RAW)), LOOP, names)

    def test_in_a_store_too(self, tmp_path):
        store = write_store(matrix_source(RAW, Y), tmp_path / "raw")
        assert "Column 4" in raw_numbers(first_entries(store.X), LOOP)
        ones = write_store(matrix_source(WARDS, Y), tmp_path / "ones")
        assert raw_numbers(first_entries(ones), LOOP) is None

    @pytest.mark.parametrize("params", [LOOP, LOGISTIC])
    @pytest.mark.parametrize(
        "X",
        [
            WARDS,
            np.zeros((3, 2)),
            np.hstack([WARDS, AGES / 100]),
            # Counts of rare words, some of them large.
            np.where(RNG.random((300, 40)) < 0.1, RNG.geometric(0.3, (300, 40)), 0.0),
        ],
    )
    def test_what_is_right_is_not(self, X, params):
        assert raw_numbers(first_entries(X), params) is None

    def test_a_public_bound_that_fits_is_right(self):
        assert raw_numbers(first_entries(RAW), LOOP | {"feature_bound": 100.0}) is None

    def test_entries_far_below_the_bound_are_noticed(self):
        rows = (RNG.random((300, 200)) < 0.2) / 6.0
        found = "entries are far below .*bound 1, .* the model may be no better .* for release"
        with pytest.warns(NoiseWarning, match=found):
            DPFrankWolfeClassifier(n_iter=2).fit(rows, Y)
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message="most entries")
            DPLogisticRegression().fit(rows, Y)
            DPLassoClassifier(max_weights=2).fit(rows, Y)
            DPFrankWolfeClassifier(n_iter=2, feature_bound=0.2).fit(rows, Y)
            DPFrankWolfeClassifier(math.inf, n_iter=2).fit(rows, Y)
            DPFrankWolfeClassifier(n_iter=2).fit(WARDS, Y)

    def test_only_who_asks_to_see_the_fit_hears_of_it(self, capsys):
        DPLogisticRegression().fit(RAW, Y)
        told = capsys.readouterr()
        assert (told.out, told.err) == ("", "")
        DPLogisticRegression(verbose=1).fit(RAW, Y)
        assert "not for release" in " ".join(capsys.readouterr().err.split())

    def test_the_first_records_are_looked_at_once_or_never(self, monkeypatch):
        looked, look = [], fitting.first_entries
        monkeypatch.setattr(fitting, "first_entries", lambda X: looked.append(1) or look(X))
        DPLogisticRegression().fit(RAW, Y)
        assert not looked
        DPLassoClassifier(max_weights=2, verbose=1).fit(RAW, Y)
        assert len(looked) == 1


class TestFoundNames:
    @pytest.mark.parametrize(
        "names",
        [
            ["note_John Q. Patient", "note_Jane Doe", "age"],
            [f"postcode_{code}" for code in range(60)],
        ],
    )
    def test_names_of_dummies_are_noticed(self, names):
        frame = pd.DataFrame(RNG.random((300, len(names))), columns=names)
        with pytest.warns(PrivacyLeakWarning, match="named it after a"):
            DPLogisticRegression().fit(frame, Y)
        search = PrivateSearch(DPLogisticRegression(), {"max_weights": [None]}, law="geometric")
        with pytest.warns(PrivacyLeakWarning, match=names[0]):
            search.fit(frame, Y)

    def test_declared_ones_are_not(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warn_of_undeclared_names(None)
            warn_of_undeclared_names(
                np.array(["blood_pressure", "blood_sugar", "ward_A", "ward_B", "days in_care"])
            )
            warn_of_undeclared_names(np.array(["seen by_a doctor", "age in years", "_", "x_"]))

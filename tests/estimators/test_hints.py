"""Remarks on columns before a fit: raw numbers, and names taken from data."""

import warnings

import numpy as np
import pandas as pd
import pytest
from evidence.matrices import matrix_source
from scipy.sparse import csc_array, csr_array

from dplasso import DPLogisticRegression, PrivateSearch
from dplasso.data.store import write_store
from dplasso.errors import PrivacyLeakWarning
from dplasso.estimators.fitting import raw_numbers, warn_of_undeclared_names

RNG = np.random.default_rng(0)
WARDS = (RNG.random((300, 4)) < 0.5).astype(float)
AGES = RNG.integers(18, 95, (300, 1)).astype(float)
RAW = np.hstack([WARDS, AGES])
Y = (AGES[:, 0] > 50).astype(int)


class TestRawNumbers:
    @pytest.mark.parametrize("kind", [np.asarray, csr_array, csc_array])
    def test_an_age_is_noticed(self, kind):
        assert "Column 4 (from 0) has much larger entries" in raw_numbers(kind(RAW))
        names = np.array([*"abcd", "age"], dtype=object)
        assert "Column 'age'" in raw_numbers(kind(RAW), names)

    def test_in_a_store_too(self, tmp_path):
        store = write_store(matrix_source(RAW, Y), tmp_path / "raw")
        assert "Column 4" in raw_numbers(store.X)
        ones = write_store(matrix_source(WARDS, Y), tmp_path / "ones")
        assert raw_numbers(ones) is None

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
    def test_what_is_right_is_not(self, X):
        assert raw_numbers(X) is None

    def test_only_who_asks_to_see_the_fit_hears_of_it(self, capsys):
        DPLogisticRegression().fit(RAW, Y)
        told = capsys.readouterr()
        assert (told.out, told.err) == ("", "")
        DPLogisticRegression(verbose=1).fit(RAW, Y)
        assert "not for release" in " ".join(capsys.readouterr().err.split())


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
        search = PrivateSearch(DPLogisticRegression(), {"max_weights": [None]})
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

"""A warning before a fit about names of columns that were taken from data."""

import warnings

import numpy as np
import pandas as pd
import pytest

from dplasso import DPLogisticRegression, PrivacyLeakWarning, PrivateSearch
from dplasso.estimators.fitting import warn_of_undeclared_names

RNG = np.random.default_rng(0)
Y = RNG.integers(0, 2, 300)


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

"""Bins at private quantiles: neighbours, noise, what fits and ledgers make of their cost."""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from dp_accounting.rdp.rdp_privacy_accountant import compute_epsilon
from scipy.optimize import brentq
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from tests.tuning.models import delta_of

from cli.conftest import done, found, said
from dplasso import (
    BudgetError,
    DataError,
    DPLassoClassifier,
    DPLinearRegression,
    DPLogisticRegression,
    Ledger,
    LedgerError,
    PrivateSearch,
    PublicEncoder,
    load,
    private_quantiles,
    save,
    write_store,
)
from dplasso.cluster import ThreadEngine
from dplasso.ledger import add_dataset, create_ledger
from recorder import compare
from schemas import Bins, Categories, Schema, schema_of
from small_fits import short_runs

SCHEMA = Schema((Bins("age", (50.0,)), Bins("income", (1.0,)), Categories("ward", ("a", "b"))))
BOUNDS = {"age": (0, 100), "income": (0, 1e6)}
HOSTILE = [np.nan, math.inf, -math.inf, 1e300, -1e300, 5e-324, -0.0, 0.0, 100.0, 1e6, 37.5]


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    age, income = rng.uniform(18, 95, n), np.exp(rng.normal(10, 1, n))
    ward = rng.choice(["a", "b"], n)
    y = (rng.random(n) < 1 / (1 + np.exp(-(age - 60) / 10))).astype(int)
    return pd.DataFrame({"age": age, "income": income, "ward": ward, "y": y})


def own(rng, size):
    """Return the rows of a person who may choose them; now and then all alike."""
    drawn = rng.choice(HOSTILE, (len(BOUNDS), 1 if rng.integers(2) else size))
    pair = dict(zip(BOUNDS, np.broadcast_to(drawn, (2, size)), strict=True))
    return pd.DataFrame(pair | {"ward": "a", "y": 1})


WORDS = {
    False: "edges protect single rows, but this fit protects people: release the edges and",
    True: "edges protect people, but this fit protects single rows: release the edges and",
}


def stored(schema, table, who, place):
    """Return a store of a table, and of whose its rows are."""
    rows = PublicEncoder(schema).transform(table)
    return write_store(place, rows, table["y"], groups=who)


def released(table, bounds=BOUNDS, **options):
    asked = {"epsilon": 1.0, "delta": 1e-6} | options
    return private_quantiles(table, SCHEMA, bounds, **asked)


def fitted(kind, schema, table, **options):
    target = {"target_bounds": (0, 1)} if kind is DPLinearRegression else {"classes": [0, 1]}
    asked = {"epsilon": 1.0, "delta": 1e-6} | target | options
    model = make_pipeline(PublicEncoder(schema), kind(**asked))
    return model.fit(table, table["y"])[-1]


class TestNeighbours:
    @pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
    @pytest.mark.parametrize("rows", [1, 3])
    def test_nothing_moves_by_more_than_its_noise_was_made_for(self, neighbors, rows):
        """Edges and a fit with them, of records whose values are anything."""
        rng, largest = np.random.default_rng(2), 0.0
        common = people(40)
        for _ in range(15):
            one = pd.concat([common, own(rng, rows)]) if neighbors == "replace-one" else common
            other = pd.concat([common, own(rng, rows)])

            def work(table):
                who = np.minimum(np.arange(len(table)), len(common))
                # So much budget that the edges are more than noise.
                asked = {"neighbors": neighbors, "rows_per_person": rows, "epsilon": 40.0}
                schema = released(table, groups=who, share=0.4, **asked)
                X = PublicEncoder(schema).transform(table)
                model = DPLogisticRegression(classes=[0, 1], **asked)
                return schema, model.fit(X, table["y"], groups=who)

            with short_runs():
                found = compare(work, one, other)
            assert found.violations == ()
            largest = max(largest, found.largest)
            (left, ours), (right, theirs) = found.results
            assert left == right
            assert (ours.coef_ == theirs.coef_).all()
        # Values that move every column's numbers are among them.
        assert 0.99 < largest <= 1.0

    @pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
    def test_the_noise_is_what_the_guarantee_needs(self, neighbors, left):
        """Standard deviation at least move / mu, mu on the exact curve; and no more than 1 %."""
        whole = brentq(lambda mu: delta_of(mu, 1.0) - 1e-6, 0.01, 1.0)
        table = people(30)
        for rows, columns in ((1, 1), (2, 2)):
            own = dict(list(BOUNDS.items())[:columns])
            asked = {"neighbors": neighbors, "rows_per_person": rows}
            schema = private_quantiles(table, SCHEMA, own, epsilon=1.0, **asked)
            _, moved, sigma, _ = left.pop()
            move = rows * math.sqrt(columns * (1 if neighbors == "add-remove" else 2)) * 2**32
            assert move <= moved < move * (1 + 1e-12)
            mu = moved / sigma
            assert 0.99 < mu / (math.sqrt(0.05) * whole) <= 1
            assert delta_of(mu, schema.edges.statement.epsilon) <= 1e-6


class TestUtility:
    def test_edges_lie_near_the_quantiles(self, left):
        """Within a cell of the grid and four standard deviations: a false alarm of 1e-3 in all."""
        table = people(50_000)
        schema = released(table, bins=8)
        ((exact, _, sigma, _),) = left
        cell, slack = exact.max(), 4 * sigma * math.sqrt(exact.size)
        for part in schema.parts[:2]:
            assert len(part.edges) == 7
            # Of a public grid, as no value of a record is.
            assert [float(f"{edge:.3g}") for edge in part.edges] == [*part.edges]
            place = [(table[part.column] < edge).mean() for edge in part.edges]
            off = np.abs(place - np.arange(1, 8) / 8).max()
            assert off * len(table) * 2**32 < cell + slack

    def test_few_records_get_edges_that_say_nothing(self):
        schema = released(people(3), epsilon=0.01)
        for part in schema.parts[:2]:
            assert 2 <= len(part.edges) <= 11
            low, high = BOUNDS[part.column]
            assert low <= part.edges[0] < part.edges[-1] <= high

    def test_amounts_that_are_mostly_one(self):
        table = people(20_000)
        table["income"] = np.where(np.arange(20_000) % 10 > 0, 0.0, table["income"])
        edges = released(table).parts[1].edges
        assert edges[-1] > 0
        assert len(edges) < 9

    def test_grids(self, left):
        """Values that the grid has to tell apart, one in each of its cells."""

        def cells(column, values, low, high):
            table = pd.DataFrame({column: values, "ward": "a"})
            private_quantiles(table, SCHEMA, {column: (low, high)}, epsilon=1.0)
            return left.pop()[0] >> 32

        assert cells("age", np.arange(101), 0, 100).tolist() == [0] + [1] * 101
        assert cells("age", np.arange(101) - 1e-9, 0, 100).tolist() == [1] * 101 + [0]
        wide = cells("income", [-1e4, *np.geomspace(100, 1e5, 23)], -1e4, 1e6)
        assert wide.size <= 256
        assert (wide.max(), wide[0], wide[1]) == (1, 0, 1)


class TestCost:
    @pytest.mark.parametrize("kind", [DPLogisticRegression, DPLinearRegression, DPLassoClassifier])
    def test_a_fit_covers_its_edges(self, kind):
        table = people(300)
        schema = released(table, share=0.2)
        ours = fitted(kind, schema, table).privacy_
        plain = fitted(kind, replace(schema, edges=None), table).privacy_
        assert ours.is_private
        assert 0.99 < ours.epsilon <= 1.0
        edges = ours.find("edges")
        assert edges.words in ours.text()
        assert edges.numbers["mu"] == schema.edges.statement.mu
        assert plain.find("edges") is None
        if ours.accountant.startswith("Gaussian"):
            assert delta_of(ours.mu, 1.0) <= 1e-6
        orders = np.linspace(1.5, 200.0, 400)
        assert compute_epsilon(orders, orders * ours.mu**2 / 2, 1e-6)[0] <= 1.1
        assert ours.mu == pytest.approx(plain.mu, rel=1e-8)
        assert all(
            ours.epsilon_by_rows[k] == pytest.approx(plain.epsilon_by_rows[k], rel=1e-6)
            for k in ("2", "10")
        )

    def test_the_command_line_covers_them_and_says_so(self, tmp_path):
        table, model = people(300), tmp_path / "m.npz"
        document = schema_of(released(table).to_json() | {"label": "y"}).to_json()
        table.to_csv(tmp_path / "t.csv", index=False)
        (tmp_path / "e.json").write_text(json.dumps(document))
        given = (tmp_path / "t.csv", "--schema", tmp_path / "e.json", "--classes", "0,1")
        statement = found("fit", *given, "--epsilon", 1, "--model", model)["privacy"]
        (edges,) = [one["numbers"] for one in statement["releases"] if one["name"] == "edges"]
        assert edges["mu"] == document["edges"]["statement"]["mu"]
        told = "private quantiles of the same records"
        assert told in said("show", model, "--explain")
        done("report", model, "--out", tmp_path / "r.html")
        assert told in (tmp_path / "r.html").read_text()
        assert load(model).model_.origin.edges.digest == document["edges"]["digest"]
        # The same rows in a store of their own, by a worker.
        done("convert", given[0], tmp_path / "t.store", *given[1:3])
        given = (tmp_path / "t.store", "--cluster", "threads", "--classes", "0,1", "--epsilon", 1)
        in_parts = found("fit", *given, "--model", tmp_path / "parts.npz")["privacy"]
        assert in_parts["releases"] == statement["releases"]

    def test_more_rows_of_a_person_cost_more(self):
        table = people(200)
        schema = released(table)
        found = fitted(DPLogisticRegression, schema, table, epsilon=3.0, rows_per_person=2).privacy_
        assert found.find("edges").numbers["mu"] == 2 * schema.edges.statement.mu

    def test_ledgers_are_charged_for_both(self, tmp_path):
        table, ledger = people(300), tmp_path / "l.ledger"
        create_ledger(ledger, 3.0, 1e-5, dataset="visits")
        paid = {"ledger": Ledger(ledger, dataset="visits")}
        schema = released(table, **paid)
        model = fitted(DPLogisticRegression, schema, table, **paid)
        edges, fit = Ledger(ledger).budget().entries
        assert edges.release == schema.edges.digest
        assert edges.charge.purpose == "edges of bins: age, income"
        assert edges.state == fit.state == "finished"
        mu = model.privacy_.mu
        assert (edges.charge.rho + fit.charge.rho) / 1e30 == pytest.approx(mu * mu / 2, rel=1e-6)
        elsewhere = released(table)
        with pytest.raises(LedgerError, match="was not charged for it"):
            fitted(DPLogisticRegression, elsewhere, table, **paid)
        with pytest.raises(BudgetError):
            released(table, **paid, epsilon=1e3, share=0.4)
        assert len(Ledger(ledger).budget().entries) == 2
        # What one data set has paid for, another has not.
        add_dataset(ledger, "wards", 3.0, 1e-5)
        with pytest.raises(LedgerError, match=r"the data set of the fit in .* was not charged"):
            fitted(DPLogisticRegression, schema, table, ledger=Ledger(ledger, dataset="wards"))
        assert Ledger(ledger, "wards").budget().entries == ()


class TestRefusals:
    def test_what_cannot_be_released(self):
        table = people(50)
        for options, words in (
            ({"bins": 1}, "bins must be whole, from 2 to 64"),
            ({"share": 0.5}, "share must lie between 0 and 0.5"),
            ({"epsilon": -1}, "epsilon must be greater than 0"),
            ({"epsilon": math.inf}, "epsilon must be positive and finite"),
            ({"neighbors": "all"}, "neighbors must be"),
            ({"random_state": 1, "ledger": "x"}, "a ledger cannot account for it"),
            ({"bounds": {}}, "at least one column"),
            ({"bounds": {"ward": (0, 1)}}, "column 'ward' has no bins in the schema"),
            ({"bounds": {"age": (5, 5)}}, "two finite numbers, low < high"),
            ({"bounds": {"age": (-1e308, 1e308)}}, "two finite numbers, low < high"),
        ):
            with pytest.raises(ValueError, match=words):
                released(table, **options)
        with pytest.raises(DataError, match="no column 'income'"):
            released(table[["age"]])

    def test_what_cannot_be_fitted(self):
        table = people(100)
        schema = released(table)
        assert not released(table, random_state=1).edges.statement.is_private
        for options, words, used in (
            ({"neighbors": "replace-one"}, "were released for neighbors='add-remove'", schema),
            ({"epsilon": 0.01}, "epsilon=0.01 is too small: the private edges of bins", schema),
            ({}, "released with `random_state`", released(table, random_state=1)),
        ):
            with pytest.raises(ValueError, match=words):
                fitted(DPLogisticRegression, used, table, **options)
        with pytest.raises(ValueError, match="were released before; use the original"):
            private_quantiles(table, schema, BOUNDS, epsilon=1.0)
        X = PublicEncoder(schema).transform(table)
        search = PrivateSearch(DPLogisticRegression(classes=[0, 1]), {"max_weights": [None, 3]})
        with pytest.raises(DataError, match="a search does not include their cost"):
            search.fit(X, table["y"])
        fitted(DPLogisticRegression, schema, table, epsilon=math.inf)

    @pytest.mark.parametrize("in_store", [False, True])
    def test_rows_that_were_chosen_still_count_them(self, in_store, tmp_path):
        table = people(200)
        schema, rows = released(table), np.arange(200) % 2 == 0
        X = PublicEncoder(schema).transform(table)
        if in_store:
            X = stored(schema, table, None, tmp_path / "s").X.tocsr()
        model = DPLogisticRegression(classes=[0, 1])
        for some, y in (
            (X.copy(), table["y"]),
            (X[rows], table["y"][rows]),
            (train_test_split(X, random_state=0)[0], np.arange(150) % 2),
        ):
            assert model.fit(some, y).privacy_.find("edges") is not None

    @pytest.mark.parametrize("way", ["memory", "partitions", "search"])
    def test_a_fit_of_rows_that_lost_them(self, way):
        """They are of the type that a fit counts edges by, but do not say which."""
        table, model = people(200), DPLogisticRegression(classes=[0, 1])
        X = PublicEncoder(released(table)).transform(table)
        for rows in (X.astype(float), X * 2, abs(X), X.maximum(0), X[:, :4], X[:, np.arange(3)]):
            given, options = (rows, table["y"]), {}
            if way == "partitions":
                given, options = ([X, rows], [table["y"]] * 2), {"engine": ThreadEngine()}
            estimator = PrivateSearch(model, {}) if way == "search" else model
            with pytest.raises(DataError, match="would not count their cost; fit on what the enc"):
                estimator.fit(*given, **options)

    def test_a_pipeline_that_loses_them_is_not_saved(self, tmp_path):
        """Joined with other columns, the rows no longer say that their edges were paid for."""
        table, model = people(200), DPLogisticRegression(classes=[0, 1])
        encoder = PublicEncoder(released(table))
        joined = ColumnTransformer([("table", encoder, ["age", "income", "ward"])])
        pipeline = make_pipeline(joined, model).fit(table, table["y"])
        with pytest.raises(ValueError, match=r"step 'table' has edges of bins .* does not count"):
            save(pipeline, tmp_path / "m.npz")
        save(make_pipeline(encoder, model).fit(table, table["y"]), tmp_path / "m.npz")
        save(load(tmp_path / "m.npz"), tmp_path / "again.npz")

    @pytest.mark.parametrize("edges_by_person", [False, True])
    @pytest.mark.parametrize("how", ["memory", "store", "partition", "partition of a store"])
    def test_a_fit_that_protects_another_unit(self, tmp_path, how, edges_by_person):
        """Edges of single rows may count every row of a person."""
        table, ledger, who = people(100), tmp_path / "l.ledger", np.arange(100) // 50
        create_ledger(ledger, 3.0, 1e-5, dataset="visits")
        paid = {"ledger": Ledger(ledger, dataset="visits")}
        schema = released(table, groups=who if edges_by_person else None, **paid)
        assert schema.edges.by_person == edges_by_person
        X, y = PublicEncoder(schema).transform(table), table["y"].to_numpy()

        def fit(by_person, **paid):
            rows, labels, groups = X, y, who if by_person else None
            if how.endswith("store"):
                rows = stored(schema, table, groups, tmp_path / f"{by_person}.store")
                labels = groups = None
            parts = {"engine": ThreadEngine()} if how.startswith("partition") else {}
            model = DPLogisticRegression(classes=[0, 1], **paid)
            return model.fit(rows, labels, groups=groups, **parts)

        with pytest.raises(ValueError, match=WORDS[edges_by_person]):
            fit(not edges_by_person, **paid)
        (edges,) = Ledger(ledger).budget().entries
        assert edges.release == schema.edges.digest
        counted = fit(edges_by_person, **paid).privacy_.find("edges").numbers["mu"]
        assert counted == schema.edges.statement.mu

    def test_partitions_with_edges_of_two_releases(self, tmp_path):
        table = people(100)
        schema = released(table)
        other = replace(schema, edges=replace(schema.edges, digest="0" * 64))
        bare = replace(schema, edges=None)
        stores = [
            stored(one, table.assign(y=np.arange(100) % k), None, tmp_path / name)
            for name, one, k in (("a", schema, 2), ("b", other, 3), ("c", bare, 4))
        ]
        numbered = sp.csr_array(stores[0].X.tocsr())
        rows = [PublicEncoder(schema).transform(table), numbered]
        model = DPLogisticRegression(classes=[0, 1])
        with pytest.raises(DataError, match="partition 2 has its edges from another private rel"):
            model.fit(rows, [table["y"]] * 2, engine=ThreadEngine())
        for pair in ([stores[0], stores[1]], [stores[2], stores[0]]):
            with pytest.raises(DataError, match=r"another private release than .*/[ac];"):
                model.fit(pair, engine=ThreadEngine())

    def test_edges_of_earlier_versions_protect_single_rows(self):
        table, who = people(100), np.arange(100)
        document = released(table, groups=who).to_json()
        del document["edges"]["by_person"]
        X = PublicEncoder(schema_of(document)).transform(table)
        model = DPLogisticRegression(classes=[0, 1])
        with pytest.raises(ValueError, match=WORDS[False]):
            model.fit(X, table["y"], groups=who)
        model.fit(X, table["y"])

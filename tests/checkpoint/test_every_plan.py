"""Fits of every plan that are killed and go on: nothing is drawn before the charge, or twice."""

from dataclasses import replace
from itertools import pairwise
from math import inf
from unittest.mock import patch

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from dplasso import (
    DPFrankWolfeClassifier,
    DPLogisticRegression,
    Ledger,
    PrivateSearch,
    private_score,
)
from dplasso.checkpoint import fit_with_checkpoints, read_checkpoint, resume_fit
from dplasso.checkpoint import session as checkpoint
from dplasso.cluster import InProcessEngine, ThreadEngine
from dplasso.errors import CheckpointError
from dplasso.fit import run as fit_run
from dplasso.ledger import charging, create_ledger
from dplasso.tuning import scores, search
from phases.cases import PLANS, rows, small
from recorder import words_drawn

# Partitions do not run these.
_ALONE = ("public rows", "named columns", "frank-wolfe")
ONE_PROCESS = {name for name in PLANS if name.startswith(_ALONE)}
ENGINES = {"memory": None, "partitions": InProcessEngine(), "threads": ThreadEngine(threads=2)}
LAYOUTS = [(name, "memory") for name in PLANS]
LAYOUTS += [(name, "partitions") for name in ("logistic", "labels", "lasso")]
LAYOUTS += [("lasso", "threads")]


@pytest.fixture(autouse=True)
def plan(request):
    """Keep the plan of a test's name small."""
    params = getattr(getattr(request.node, "callspec", None), "params", {})
    found = PLANS[params.get("name", "logistic")]
    with small(found):
        yield found


@pytest.fixture
def ledger(tmp_path, plan):
    known = plan.estimator.get_params()
    known = {one: known[one] for one in ("neighbors", "rows_per_person")}
    path = tmp_path / "team.ledger"
    create_ledger(path, 600.0, 1e-4, **known)
    return path


def case_of(name, layout="memory", **options):
    """Return an estimator and its data."""
    case = PLANS[name]
    X, y = rows(case)
    X = sp.csr_array(X.astype(np.float32))
    if layout != "memory":
        cuts = [slice(*pair) for pair in pairwise([0, 20, 55, len(y)])]
        X, y = [X[cut] for cut in cuts], [y[cut] for cut in cuts]
    return clone(case.estimator).set_params(**options), (X, y)


def writes_of(model, data, path, seconds=0.0):
    """Return what is done whenever a checkpoint is written, in a fit of single steps."""
    places, write = [], checkpoint.write_checkpoint

    def noted(held, *rest, **options):
        places.append((len(held.released), bool(held.state)))
        write(held, *rest, **options)

    with patch.object(checkpoint, "write_checkpoint", noted):
        fit_with_checkpoints(clone(model), *data, path, seconds=seconds)
    path.unlink()
    return places


def kills(name, places, last=1):
    """Return at which writes a fit is killed, none of the `last` ones among them.

    They are the first, the last of every phase, and some between: of each plan a quarter, another
    one from plan to plan.
    """
    ends = [k for k, (one, other) in enumerate(pairwise(places)) if one[0] != other[0]]
    chosen = {*ends, *range(0, len(places), 31)}
    among = sorted(k + 1 for k in chosen if k < len(places) - last)
    return among[[*PLANS].index(name) % min(4, len(among)) :: 4]


# Plans are resumed with a seed and without one in turns.
UNSEEDED, SEEDED = [*PLANS][::2], [*PLANS][1::2]
EXACT = ("logistic", "prior of a short list", "lasso", "frank-wolfe, one process")


@pytest.mark.parametrize(
    ("name", "options"),
    [(name, {"random_state": 7}) for name in SEEDED] + [(name, {"epsilon": inf}) for name in EXACT],
)
def test_a_repeatable_fit_ends_as_the_very_same_model(name, options, path, killed):
    model, data = case_of(name, **options)
    whole = clone(model).fit(*data).model_
    for count in kills(name, writes_of(model, data, path)):
        killed(clone(model), data, path, count)
        resumed = resume_fit(clone(model), *data, path).model_
        assert resumed.digest == whole.digest
        assert resumed.statement == whole.statement
        path.unlink()


@pytest.mark.parametrize("name", UNSEEDED)
def test_an_unseeded_fit_keeps_what_was_released_and_draws_the_rest(name, path, killed, ledger):
    model, data = case_of(name, ledger=ledger)
    digests = []
    places = writes_of(case_of(name)[0], data, path)
    # How many gradients there are follows from a noisy count.
    for count in kills(name, places, last=7):
        # The note of the charge is one write more.
        killed(clone(model), data, path, count + 1)
        before = read_checkpoint(path)
        resumed = resume_fit(clone(model), *data, path).model_
        kept = len(before.released)
        same = replace(resumed.released, entries=resumed.released.entries[:kept])
        assert same.digest == before.released.digest
        assert read_checkpoint(path).released.digest == resumed.digest
        # Complete, it is the same as often as it is asked for.
        assert resume_fit(clone(model), *data, path).model_.digest == resumed.digest
        digests.append(resumed.digest)
        path.unlink()
    # Each was charged once.
    charged = [(entry.state, entry.release) for entry in Ledger(ledger).budget().entries]
    assert charged == [("finished", digest) for digest in digests]
    assert len(set(digests)) == len(digests)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *(pytest.param(name, {}, id=name) for name in PLANS),
        # The last phase of these has nothing to do.
        *(pytest.param(name, {"epsilon": inf}, id=f"{name}, no privacy") for name in EXACT),
    ],
)
def test_what_a_phase_releases_is_kept_before_the_next_one_begins(name, options, path):
    # Which phases have something to do may follow from a noisy count.
    model, data = case_of(name, random_state=3, **options)
    places = {done for done, _ in writes_of(model, data, path, seconds=1e9)}
    entries = clone(model).fit(*data).model_.released.entries
    assert {k + 1 for k, one in enumerate(entries) if one.release is not None} <= places
    assert places <= {0, *range(1, len(entries) + 1)}
    assert len(entries) in places


def test_a_fit_goes_on_with_another_layout_of_the_same_records(path, killed):
    """Checkpoints know original column numbers alone."""
    for name in ("short list", "lasso, kept", "lasso"):
        with small(PLANS[name]):
            model, data = case_of(name, random_state=7)
            whole = clone(model).fit(*data).model_.digest
            killed(clone(model), data, path, 9)
            parts = case_of(name, "partitions")[1]
            resumed = resume_fit(clone(model), *parts, path, engine=InProcessEngine())
            assert resumed.model_.digest == whole
        path.unlink()


@pytest.fixture
def at_the_charge(monkeypatch):
    """Return the words that were drawn when the ledger was charged, and the streams."""
    streams, drawn, reserve, fresh = [], [], charging.reserve, fit_run.random_stream

    def stream(*given):
        streams.append(fresh(*given))
        return streams[-1]

    def charged(*given, **options):
        drawn.append(sum(map(words_drawn, streams)))
        return reserve(*given, **options)

    for holder in (fit_run, search, scores):
        monkeypatch.setattr(holder, "random_stream", stream)
    monkeypatch.setattr(charging, "reserve", charged)
    return drawn, streams


@pytest.mark.parametrize(("name", "layout"), LAYOUTS)
def test_nothing_is_drawn_before_the_charge(name, layout, ledger, at_the_charge):
    drawn, streams = at_the_charge
    model, data = case_of(name, layout, ledger=ledger)
    model.fit(*data, engine=ENGINES[layout])
    assert drawn == [0]
    assert words_drawn(streams[0]) > 0


def test_a_score_draws_nothing_before_the_charge(ledger, at_the_charge):
    drawn, streams = at_the_charge
    model, data = case_of("logistic")
    model.fit(*data)
    del streams[:]
    private_score(model, *data, 1.0, ledger=ledger)
    assert drawn == [0]
    assert words_drawn(streams[0]) > 0


def test_a_search_draws_nothing_but_its_parts_before_the_charge(ledger, at_the_charge, monkeypatch):
    """Parts that cannot be written are refused before; who is in which never leaves."""
    drawn, streams = at_the_charge
    divided = []
    original = search.draw_held_out

    def draw(*given):
        found = original(*given)
        divided.append(sum(map(words_drawn, streams)))
        return found

    monkeypatch.setattr(search, "draw_held_out", draw)
    tried = PrivateSearch(
        DPLogisticRegression(classes=[0, 1]),
        {"max_weights": [None, 2]},
        2.0,
        tries=3,
        ledger=ledger,
    )
    tried.fit(*case_of("logistic")[1])
    assert drawn == divided
    assert words_drawn(streams[0]) > drawn[0]


@pytest.mark.parametrize("name", sorted(ONE_PROCESS))
def test_what_partitions_cannot_do_is_refused_before_the_charge(name, ledger):
    model, data = case_of(name, "partitions", ledger=ledger)
    with pytest.raises(ValueError, match="one process"):
        model.fit(*data, engine=InProcessEngine())
    assert Ledger(ledger).budget().entries == ()


def test_class_weights_may_go_by_the_names_of_labels_from_the_data(data, path):
    model = DPFrankWolfeClassifier(20.0, n_iter=5, class_weight={"no": 1.0, "yes": 2.0})
    first = fit_with_checkpoints(model, *data, path).model_.digest
    assert resume_fit(clone(model), *data, path).model_.digest == first
    with pytest.raises(CheckpointError, match="class_weight"):
        resume_fit(clone(model).set_params(class_weight={"no": 1.0, "yes": 3.0}), *data, path)

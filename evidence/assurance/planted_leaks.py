"""Planted bugs of the private step, and of what leaves a fit beside it."""

from evidence.assurance.mutants import Mutant

_REPLAY = "tests/evidence/assurance/test_replay.py::"
_SEEN = _REPLAY + "test_all_neighbours_in_one_form"
_ELSE = _REPLAY + "test_everything_else_is_the_same_for_all_neighbours"
_REFUSED = "tests/evidence/assurance/test_refusals.py::"
_LEAVES = "tests/estimators/test_privacy.py::"

STEP = (
    Mutant(
        name="true sign",
        area="step",
        planted="after a private draw of the coordinate, the step follows the gradient's sign",
        file="selection/weights.py",
        find="    return -descent_sign(gradient) if ascends else descent_sign(gradient)",
        replace="    return descent_sign(gradient)",
        test="tests/selection/test_weights.py::test_a_rare_sign_keeps_its_probability",
        fast=True,
    ),
    Mutant(
        name="clipped from above only",
        area="step",
        planted="entries below the negative bound are taken as they are",
        file="frank_wolfe/gradient.py",
        find="    return min(max(np.float64(value), -bound), bound)",
        replace="    return min(np.float64(value), bound)",
        test=f"{_SEEN}[exact-add-remove]",
        fast=True,
    ),
    Mutant(
        name="duplicates clipped one by one",
        area="step",
        planted="entries stored twice are not added up before they are clipped",
        file="matrix/compressed.py",
        find="    if canonical == 0:\n",
        replace="    if canonical < 0:\n",
        test=f"{_REPLAY}test_all_neighbours_with_entries_stored_twice[add-remove]",
    ),
    Mutant(
        name="margins by the number of rows",
        area="step",
        planted="a record's margin is scaled by how many records there are",
        file="frank_wolfe/gradient.py",
        find="    return problem.radius / problem.margin_unit * weight_scale(step)",
        replace="    return 18 / problem.labels.size * problem.radius / problem.margin_unit * "
        "weight_scale(step)",
        test=f"{_SEEN}[default-add-remove]",
        fast=True,
    ),
    Mutant(
        name="dense column refreshes everybody",
        area="step",
        planted="a step that looks at most rows looks at all of them",
        file="frank_wolfe/sparse.py",
        find="    scratch, rows = state.scratch, state.rows\n    touched = np.int64(0)\n",
        replace=(
            "    scratch, rows = state.scratch, state.rows\n    touched = np.int64(0)\n"
            "    if last - first > rows.size // 2 and column[0].size:\n"
            "        everyone = np.arange(rows.size, dtype=np.int32)\n"
            "        every = (everyone, np.zeros(0, column[1].dtype), column[2])\n"
            "        exact = (public[0], public[1], public[2], 0.0, public[4])\n"
            "        for i in everyone:\n"
            "            rows[i].lowest, rows[i].highest = np.inf, -np.inf\n"
            "        counts = touch_rows(\n"
            "            every, exact, rows, 0, rows.size, 0, step, scheduled, scratch\n"
            "        )\n"
            "        refresh_block(\n"
            "            problem, state, scratch, selector, counts, record, touched, True\n"
            "        )\n"
        ),
        test=f"{_SEEN}[loose-add-remove]",
    ),
    Mutant(
        name="a quota of refreshes",
        area="step",
        planted="at most three of the rows due at a step are refreshed",
        file="frank_wolfe/sparse.py",
        find=(
            "        while head[step] != NONE:\n"
            "            count = take_due(head, rows_due, rows, step, scratch.taken)\n"
        ),
        replace=(
            "        if head[step] != NONE:\n"
            "            count = take_due(head, rows_due, rows, step, scratch.taken[:3])\n"
        ),
        test=f"{_SEEN}[default-add-remove]",
    ),
    Mutant(
        name="intercept beyond the bound",
        area="step",
        planted="the constant column is twice the bound",
        file="frank_wolfe/gradient.py",
        find="            alpha[problem.n_columns] += share(scaled, problem.bound)",
        replace="            alpha[problem.n_columns] += share(scaled, 2.0 * problem.bound)",
        test=f"{_SEEN}[standard-add-remove]",
    ),
    Mutant(
        name="difference rounded once",
        area="step",
        planted="a share's change is rounded, not the difference of rounded shares taken",
        file="frank_wolfe/gradient.py",
        find="    return np.int64(np.rint(scaled_new * value) - np.rint(scaled_old * value))",
        replace="    return np.int64(np.rint((scaled_new - scaled_old) * value))",
        test=f"{_REPLAY}test_gradients_are_the_exact_sum_of_rounded_shares[exact]",
        fast=True,
    ),
    Mutant(
        name="gradients in single precision",
        area="step",
        planted="shares are rounded to 24 bits, so the sum moves by more than the bound",
        file="frank_wolfe/gradient.py",
        find="    return np.int64(np.rint(scaled_gradient * value))",
        replace="    return np.int64(np.float32(scaled_gradient * value)) + 256",
        test=f"{_SEEN}[exact-add-remove]",
    ),
    Mutant(
        name="only columns that occur",
        area="step",
        planted="candidates are the columns that have an entry",
        file="estimators/lasso.py",
        find="        n_coordinates = problem.n_columns + int(problem.intercept)\n",
        replace="        n_coordinates = np.unique(problem.rows.indices).size\n",
        test=f"{_REPLAY}test_the_calls_inside_are_the_same_where_both_draw[sparse-noisy-max]",
        fast=True,
    ),
)

LEAKS = (
    Mutant(
        name="bound from the data",
        area="leak",
        planted="entries are bounded by the largest there is, if that is smaller",
        file="estimators/lasso.py",
        find="            bound=float(self.feature_bound),\n",
        replace="            bound=min(float(self.feature_bound), float(abs(X).max())),\n",
        test=f"{_ELSE}[add-remove-noisy-max]",
    ),
    Mutant(
        name="bound from the data, written down",
        area="leak",
        planted="the estimator's own parameter becomes the largest entry",
        file="estimators/lasso.py",
        find="        classes, labels = encode_labels(y, self.classes)\n",
        replace=(
            "        self.feature_bound = min(float(self.feature_bound), float(abs(X).max()))\n"
            "        classes, labels = encode_labels(y, self.classes)\n"
        ),
        test=f"{_ELSE}[add-remove-noisy-max]",
    ),
    Mutant(
        name="fewer steps for small data",
        area="leak",
        planted="the number of steps depends on the number of rows",
        file="estimators/lasso.py",
        find="            n_steps=int(self.n_iter),\n",
        replace="            n_steps=min(int(self.n_iter), X.shape[0] - 7),\n",
        test=f"{_ELSE}[add-remove-noisy-max]",
    ),
    Mutant(
        name="a warning about values",
        area="leak",
        planted="entries far beyond the bound are warned about",
        file="estimators/lasso.py",
        find="        classes, labels = encode_labels(y, self.classes)\n",
        replace=(
            "        if abs(X).max() > 100 * self.feature_bound:\n"
            '            warnings.warn("very large entries", stacklevel=2)\n'
            "        classes, labels = encode_labels(y, self.classes)\n"
        ),
        test=f"{_ELSE}[add-remove-noisy-max]",
        fast=True,
    ),
    Mutant(
        name="a warning from the search for NaN",
        area="leak",
        planted="an overflow while looking for NaN is told",
        file="training/inputs.py",
        find='with np.errstate(over="ignore", invalid="ignore"):\n        return validate_data(',
        replace='with np.errstate(over="warn", invalid="warn"):\n        return validate_data(',
        test=f"{_ELSE}[add-remove-noisy-max]",
    ),
    Mutant(
        name="history of a private fit",
        area="leak",
        planted="objective and gap are recorded in private fits",
        file="estimators/lasso.py",
        find='            record_history=mechanism.name == "none",\n',
        replace="            record_history=True,\n",
        test=(
            f"{_LEAVES}TestNothingElseLeaves::"
            "test_a_private_fit_has_the_documented_attributes_only[noisy-max-sparse]"
        ),
    ),
    Mutant(
        name="work of a private fit",
        area="leak",
        planted="counts of the work are kept in private fits",
        file="estimators/lasso.py",
        find='            record_work=mechanism.name != "exponential",\n',
        replace="            record_work=True,\n",
        test=f"{_ELSE}[add-remove-noisy-max]",
        fast=True,
    ),
    Mutant(
        name="NaN let through",
        area="leak",
        planted="NaN and infinity reach the solver",
        file="training/inputs.py",
        find='            accept_sparse=("csr", "csc"),\n',
        replace=(
            '            ensure_all_finite=False,\n            accept_sparse=("csr", "csc"),\n'
        ),
        test=f"{_REFUSED}test_values_that_are_no_numbers[csr float64-nan-0]",
        fast=True,
    ),
    Mutant(
        name="labels checked after training",
        area="leak",
        planted="the data are laid out and indexed before a third label is refused",
        file="estimators/lasso.py",
        find="        classes, labels = encode_labels(y, self.classes)\n",
        replace=(
            "        self._problem(X, np.zeros(X.shape[0], dtype=np.int8))\n"
            "        classes, labels = encode_labels(y, self.classes)\n"
        ),
        test=f"{_REFUSED}test_a_third_label[csr float64-None]",
    ),
    Mutant(
        name="a third label taken for the first",
        area="leak",
        planted="labels that were not declared count as negative",
        file="data/labels.py",
        find="    if np.any(outside):\n",
        replace="    if outside.size < 0:\n",
        test=f"{_REFUSED}test_a_third_label[csr float64-classes1]",
        fast=True,
    ),
    Mutant(
        name="classes said to be declared",
        area="leak",
        planted="the statement calls classes taken from the labels declared",
        file="estimators/lasso.py",
        find="            classes_declared=self.classes is not None,\n",
        replace="            classes_declared=True,\n",
        test=f"{_LEAVES}TestStatement::test_classes_taken_from_the_labels_are_declared_public",
    ),
    Mutant(
        name="a seeded fit called private",
        area="leak",
        planted="the statement does not mention the seed",
        file="estimators/lasso.py",
        find="            seeded=self.random_state is not None,\n",
        replace="            seeded=False,\n",
        test=f"{_LEAVES}TestStatement::test_a_seeded_fit_is_not[0]",
        fast=True,
    ),
    Mutant(
        name="the seed in the model file",
        area="leak",
        planted="a model file tells its seed",
        file="model.py",
        find=(
            '    params["random_state"] = "seeded" if parts.statement.randomness == "seeded" '
            "else None\n"
        ),
        replace='    params["random_state"] = parts.params["random_state"]\n',
        test="tests/test_model.py::test_the_seed_is_never_stored",
    ),
)

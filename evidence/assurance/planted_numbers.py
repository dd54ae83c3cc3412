"""Planted bugs of accounting, randomness, selection structures, and of files and data."""

from evidence.assurance.mutants import Mutant

_PRICE = "tests/evidence/assurance/test_draw_error.py::test_what_is_drawn_is_what_is_paid_for"
_WORDS = "tests/privacy/test_randomness.py::"
_STREAMS = "tests/evidence/assurance/test_streams.py::"

ACCOUNTING = (
    Mutant(
        name="steps not counted",
        area="accounting",
        planted="T steps cost what one costs",
        file="privacy/accounting.py",
        find="SelfComposedDpEvent(step, n_iter)",
        replace="SelfComposedDpEvent(step, 1)",
        test="tests/privacy/test_accounting.py::test_composed_steps_cost_what_listed_steps_cost[50]",
        fast=True,
    ),
    Mutant(
        name="calibrated to the wrong side",
        area="accounting",
        planted="the bisection returns the value the accountant refused",
        file="privacy/accounting.py",
        find="ever become `low`.\n    return low\n",
        replace="ever become `low`.\n    return high\n",
        test=(
            "tests/privacy/test_accounting.py::"
            "test_calibration_lands_on_the_private_side_within_one_percent"
        ),
    ),
    Mutant(
        name="half of zCDP's rho",
        area="accounting",
        planted="a bounded-range step is taken for eps0^2/16-zCDP",
        file="privacy/accounting.py",
        find="    return eps0 * eps0 / 8.0\n",
        replace="    return eps0 * eps0 / 16.0\n",
        test="tests/privacy/test_accounting.py::test_a_step_is_one_eighth_of_its_square_zcdp",
    ),
    Mutant(
        name="accountant for any mechanism",
        area="accounting",
        planted="the bounded-range accountant accepts mechanisms that are not bounded range",
        file="privacy/mechanism.py",
        find='    if mechanism != "exponential":\n',
        replace='    if mechanism == "":\n',
        test=(
            "tests/privacy/test_mechanism.py::"
            "test_only_the_exponential_mechanism_has_this_accountant"
        ),
    ),
    Mutant(
        name="draws not charged",
        area="accounting",
        planted="the accountant is given all of delta",
        file="privacy/mechanism.py",
        find="        return calibrate_eps0(epsilon, delta - share, n_iter), share\n",
        replace="        return calibrate_eps0(epsilon, delta, n_iter), 0.0\n",
        test=f"{_PRICE}[add-remove-1.0-bucket]",
        fast=True,
    ),
    Mutant(
        name="one draw charged",
        area="accounting",
        planted="delta pays for one draw instead of T",
        file="privacy/mechanism.py",
        find="    return n_iter * SAMPLING_ERROR * (1.0 + math.exp(min(eps0, 700.0)))\n",
        replace="    return SAMPLING_ERROR * (1.0 + math.exp(min(eps0, 700.0)))\n",
        test=f"{_PRICE}[add-remove-1.0-bucket]",
    ),
    Mutant(
        name="total variation alone",
        area="accounting",
        planted="a lost outcome is charged as if it were as unlikely on the neighbour",
        file="privacy/mechanism.py",
        find="    return n_iter * SAMPLING_ERROR * (1.0 + math.exp(min(eps0, 700.0)))\n",
        replace="    return n_iter * SAMPLING_ERROR\n",
        test=f"{_PRICE}[add-remove-50.0-bucket]",
    ),
)

RANDOMNESS = (
    Mutant(
        name="32 bits of entropy",
        area="randomness",
        planted="the key repeats four bytes from the system",
        file="privacy/randomness.py",
        find='        key = np.frombuffer(os.urandom(32), dtype="<u4")\n',
        replace='        key = np.frombuffer(os.urandom(4) * 8, dtype="<u4")\n',
        test=f"{_STREAMS}test_all_256_bits_come_from_the_system",
    ),
    Mutant(
        name="numpy's global generator",
        area="randomness",
        planted="the key comes from a generator that forked processes inherit",
        file="privacy/randomness.py",
        find='        key = np.frombuffer(os.urandom(32), dtype="<u4")\n',
        replace="        key = np.random.randint(0, 2**32, size=8, dtype=np.uint64)\n",
        test=f"{_STREAMS}test_processes[fork]",
    ),
    Mutant(
        name="streams that can be copied",
        area="randomness",
        planted="pickling a stream makes a second one with the same words",
        file="privacy/randomness.py",
        find="    def __reduce__(self) -> Any:\n",
        replace="    def _reduce(self) -> Any:\n",
        test=f"{_STREAMS}test_a_stream_cannot_be_copied",
        fast=True,
    ),
    Mutant(
        name="a counter that stands still",
        area="randomness",
        planted="every block of words is the first",
        file="privacy/randomness.py",
        find="    s[12] = np.uint32(s[12] + np.uint32(1))\n",
        replace="    s[12] = np.uint32(s[12] + np.uint32(0))\n",
        test=f"{_WORDS}TestChaCha20::test_blocks_follow_each_other",
        fast=True,
    ),
    Mutant(
        name="a counter of 32 bits",
        area="randomness",
        planted="after 2^32 blocks the words repeat",
        file="privacy/randomness.py",
        find="        s[13] = np.uint32(s[13] + np.uint32(1))\n",
        replace="        s[13] = np.uint32(s[13] + np.uint32(0))\n",
        test=f"{_WORDS}TestChaCha20::test_the_counter_has_64_bits",
    ),
    Mutant(
        name="ChaCha8",
        area="randomness",
        planted="8 rounds instead of 20",
        file="privacy/randomness.py",
        find="    for _ in range(10):\n",
        replace="    for _ in range(4):\n",
        test=f"{_WORDS}TestChaCha20::test_published_vectors",
    ),
    Mutant(
        name="bare remainder",
        area="randomness",
        planted="integers below a bound favour small ones",
        file="privacy/randomness.py",
        find="    while word < excess:\n",
        replace="    while word < excess and count < 0:\n",
        test=f"{_WORDS}TestBelow::test_rejects_exactly_the_excess",
    ),
    Mutant(
        name="64 bits settle every comparison",
        area="randomness",
        planted="a tie with the probability's first word counts as a miss",
        file="privacy/randomness.py",
        find="        rest -= whole\n",
        replace="        return False\n",
        test=f"{_WORDS}TestBernoulli::test_a_tie_is_settled_by_the_next_word",
    ),
    Mutant(
        name="uniforms that can be zero",
        area="randomness",
        planted="small uniforms lose their bits",
        file="privacy/randomness.py",
        find="    if word < _FULL_PRECISION:\n",
        replace="    if word > np.uint64(2**64 - 1):\n",
        test=f"{_WORDS}TestUniform::test_is_never_zero",
    ),
)

SELECTION = (
    Mutant(
        name="levels drawn without acceptance",
        area="selection",
        planted="a column is drawn by its level's bound, up to twice its weight",
        file="selection/bucket.py",
        find="        if bernoulli(stream, weight / np.float64(ticks)):\n",
        replace="        if weight > -1.0:\n",
        test=(
            "tests/selection/test_contract.py::TestEveryPrivateSelector::"
            "test_draws_follow_the_closed_form[17-0-bucket]"
        ),
        compiled=True,
    ),
    Mutant(
        name="a bound below the weight",
        area="selection",
        planted="the bound forgets the second term of the hyperbolic cosine",
        file="selection/bucket.py",
        find="            weight *= selector.edge_factor[level]\n",
        replace="            weight *= 1.0\n",
        test="tests/selection/test_bucket.py::TestExactness::test_a_thousand_columns[0.01]",
    ),
    Mutant(
        name="columns that fell stay where they were",
        area="selection",
        planted="only rises move a column between levels",
        file="selection/bucket.py",
        find="        if source != target:\n            move(order, position, start",
        replace="        if source < target:\n            move(order, position, start",
        test=(
            "tests/selection/test_direction.py::"
            "test_changes_told_together_leave_the_same_structure[bucket]"
        ),
    ),
    Mutant(
        name="columns that rose stay where they were",
        area="selection",
        planted="only falls move a column between levels",
        file="selection/bucket.py",
        find="        if source != target:\n            move(order, position, start",
        replace="        if source > target:\n            move(order, position, start",
        test=(
            "tests/selection/test_direction.py::"
            "test_changes_told_together_leave_the_same_structure[bucket]"
        ),
    ),
    Mutant(
        name="group sums that drift",
        area="selection",
        planted="big-little forgets to subtract a member's old ticks",
        file="selection/big_little.py",
        find="        after = total[group] + counted - ticks[j]\n",
        replace="        after = total[group] + counted\n",
        test="tests/selection/test_transcripts.py::test_follows_a_forced_transcript[big-little]",
    ),
    Mutant(
        name="one noise for both signs",
        area="selection",
        planted="noisy-max compares both signs of a column by the same variate",
        file="selection/noisy_max.py",
        find="        key = np.log(exponential(stream)) + exponent * behind(largest, -gradient)\n",
        replace=(
            "        key += exponent * (behind(largest, -gradient) - behind(largest, gradient))\n"
        ),
        test=(
            "tests/selection/test_contract.py::TestEveryPrivateSelector::"
            "test_draws_follow_the_closed_form[17-0-noisy-max]"
        ),
        compiled=True,
    ),
)

INTEGRITY = (
    Mutant(
        name="checksum not compared",
        area="integrity",
        planted="a damaged model file is read",
        file="files/archive.py",
        find="            if claimed != digest(members):",
        replace="            if len(claimed) != 32 and claimed != digest(members):",
        test="tests/test_model_damage.py::test_other_signs_under_the_old_checksum_are_refused",
        fast=True,
    ),
    Mutant(
        name="written in place",
        area="integrity",
        planted="an interrupted save leaves half a file where a model was",
        file="files/atomic.py",
        find='    beside = target.with_name(temporary or f".dplasso-{secrets.token_hex(8)}.tmp")\n',
        replace='    beside, temporary = target, "in place"\n',
        test="tests/files/test_atomic.py::test_an_interruption_leaves_what_was_there",
    ),
    Mutant(
        name="a resumed fit charged again",
        area="integrity",
        planted="the charge is not made under the token that the checkpoint keeps",
        file="checkpoint/charge.py",
        find="charge_of(mechanism), token=note.token)\n",
        replace="charge_of(mechanism))\n",
        test=(
            "tests/checkpoint/test_charge.py::"
            "test_killed_at_any_moment_it_is_charged_once[after the charge]"
        ),
    ),
    Mutant(
        name="one charge for two models",
        area="integrity",
        planted="a finished entry of the ledger accepts any transcript",
        file="privacy/ledger/store.py",
        find="    if state == FINISHED and (release is None or release != released):\n",
        replace="    if state == FINISHED and release is None:\n",
        test=(
            "tests/privacy/ledger/test_store.py::TestEntries::"
            "test_a_finished_entry_keeps_what_it_paid_for"
        ),
    ),
    Mutant(
        name="name before bytes",
        area="integrity",
        planted="a file gets its name before its bytes are on the disk",
        file="files/atomic.py",
        find="            os.fsync(file.fileno())\n",
        replace="",
        test="tests/files/test_atomic.py::test_the_bytes_are_on_the_disk_before_the_name_is",
    ),
    Mutant(
        name="predictions not clipped",
        area="integrity",
        planted="entries are clipped in training but not in prediction",
        file="matrix/margins.py",
        find="                total += weight * clip(value, bound)\n",
        replace="                total += weight * value\n",
        test="tests/matrix/test_margins.py::test_margins_are_those_of_clipped_rows",
    ),
    Mutant(
        name="the caller's matrix rewritten",
        area="integrity",
        planted="duplicate entries are added up in the caller's own arrays",
        file="matrix/compressed.py",
        find="        X = X.copy()\n",
        replace="",
        test=(
            "tests/estimators/test_invariance.py::TestNothingOfTheCallerChanges::"
            "test_data_and_parameters[sparse-duplicates]"
        ),
    ),
    Mutant(
        name="stored zeros count as entries",
        area="integrity",
        planted="an explicit zero refreshes its row, so that equal data give other models",
        file="frank_wolfe/sparse.py",
        find="        if term == 0:\n",
        replace="        if term == 0 and step < 0:\n",
        test="tests/estimators/test_invariance.py::TestSameResult::test_explicit_zeros[mixed]",
    ),
)

"""Noisy gradient descent, slow and obvious: one record at a time, in plain floats and integers."""

import math
from fractions import Fraction

import numpy as np

from dplasso.gradient_descent.noisy_descent import BLOCK
from dplasso.losses.loss import gradient, residual_vector, second_derivative
from dplasso.privacy.gaussian_noise import noise_table, noisy
from dplasso.privacy.randomness import word_buffers

SLACK = 2.0**-30


def scaled(row, scale_exponents):
    """Return the entries of a row with those of each column halved so often; exact."""
    return [float(v) * 0.5 ** int(b) for v, b in zip(row, scale_exponents, strict=True)]


def factor(row, constant, norm_bound=None, scale_exponents=None):
    """Return what the entries of a row, halved, are multiplied by."""
    row = row if scale_exponents is None else scaled(row, scale_exponents)
    entries = [abs(float(v)) for v in row if v != 0.0]
    largest = max(entries, default=0.0)
    if largest < 1e-290:
        return 0.0
    total = 0.0
    for v in entries:
        total += (v / largest) ** 2
    root = math.sqrt(total * (1.0 + len(entries) * 2.0**-52))
    longest = math.sqrt(1.0 - constant * constant) * (1.0 - SLACK)
    if norm_bound is None:
        return longest / root / largest
    return longest / max(norm_bound, root * largest)


def residuals(loss, margins, label):
    """Return the residuals of a record at its margins."""
    if len(margins) == 1:
        return [gradient(loss, margins[0], label)]
    found = np.empty(len(margins))
    residual_vector(loss, np.array(margins), label, found)
    return found.tolist()


def contributions(
    dense,
    labels,
    weights,
    loss,
    unit,
    *,
    constant=0.0,
    norm_bound=None,
    scale_exponents=None,
    record_weights=None,
):
    """Return what each record adds to each coordinate, in integer units.

    Weights are those of the entries as given: that they are halved is in the factor and the shares.
    """
    n_outputs, rows = loss.n_outputs, []
    scale_exponents = (
        [0] * np.shape(dense)[1] if scale_exponents is None else scale_exponents.tolist()
    )
    dense = np.asarray(dense, dtype=np.float64).tolist()
    own = np.ones(len(dense)) if record_weights is None else record_weights
    for row, label, weight in zip(dense, labels, own.tolist(), strict=True):
        scale, entry = factor(row, constant, norm_bound, scale_exponents), constant * (1.0 - SLACK)
        margins = []
        for own in np.reshape(weights, (-1, n_outputs)).T.tolist():
            margin = 0.0
            for v, w in zip(row, own, strict=False):
                if v != 0.0:
                    margin += v * w
            margins.append(margin * scale + (entry * own[len(row)] if constant else 0.0))
        found = [weight * q for q in residuals(loss, margins, float(label))]
        halves = [0.5**b for b in scale_exponents]
        shares = [
            int(q * unit * scale * v * half)
            for v, half in zip(row, halves, strict=True)
            for q in found
        ]
        rows.append(shares + ([int(q * entry * unit) for q in found] if constant else []))
    return np.array(rows, dtype=np.int64).reshape(len(rows), -1)


def energies(
    dense, unit, *, weights=None, constant=0.0, norm_bound=None, scale_exponents=None, loads=None
):
    """Return what each record adds to the energies and to the counts of rows, in integer units."""
    dense, found = np.asarray(dense, dtype=np.float64), []
    scale_exponents = (
        np.zeros(dense.shape[1], dtype=int) if scale_exponents is None else scale_exponents
    )
    weights = np.ones(len(dense)) if weights is None else weights
    for row, weight in zip(dense.tolist(), weights.tolist(), strict=True):
        scale = factor(row, constant, norm_bound, scale_exponents)
        entries = [v * scale for v in scaled(row, scale_exponents)]
        own = [256] * len(row) if loads is None else loads.tolist()
        load = sum(a for v, a in zip(row, own, strict=True) if v != 0.0)
        # Rows without entries, of a load up to 32, 40, 51, 64, 81 and so on, and of larger ones.
        edges = [0, *(round(32 * 2 ** (k / 3)) for k in range(58))]
        sizes = [0] * (len(edges) + 1)
        sizes[sum(load > edge for edge in edges)] = int(weight * 0.435 * unit)
        found.append([int(weight * z * z * 0.9 * unit) for z in entries] + sizes)
    return np.array(found, dtype=object)


def magnitudes(dense, unit, *, weights=None):
    """Return what each record adds to the counts of entries by column and magnitude, in units."""
    dense, found = np.asarray(dense, dtype=np.float64), []
    weights = np.ones(len(dense)) if weights is None else weights
    for row, weight in zip(dense.tolist(), weights.tolist(), strict=True):
        counts = [[0] * 32 for _ in row]
        n_entries = sum(entry != 0.0 for entry in row)
        for entry, own in zip(row, counts, strict=True):
            if entry != 0.0:
                least = [k for k in range(-16, 16) if Fraction(abs(entry)) >= Fraction(4) ** k]
                place = max(least, default=-16) + 16
                own[place] += int(weight * unit * (1.0 - SLACK) / math.sqrt(n_entries))
        found.append(np.ravel(counts).tolist())
    return np.array(found, dtype=object)


def entries(dense, scales, length, unit, *, weights=None):
    """Return what each record adds to the sums of entries of columns with a scale, in units."""
    dense, found = np.asarray(dense, dtype=np.float64), []
    weights = np.ones(len(dense)) if weights is None else weights
    for row, weight in zip(dense.tolist(), weights.tolist(), strict=True):
        own = [entry * scale for entry, scale in zip(row, scales.tolist(), strict=True)]
        square = 0.0
        for entry in own:
            square += entry * entry
        part = weight * unit * (1.0 - SLACK) / max(length, math.sqrt(square))
        found.append([int(entry * part) for entry in own])
    return np.array(found, dtype=object)


def moments(dense, labels, model, loss, units, *, weights=None, constant=0.0, norm_bound=None):
    """Return what each record adds to the gradient, the curvature and the squares, in units."""
    dense, found = np.asarray(dense, dtype=np.float64), []
    weights = np.ones(len(dense)) if weights is None else weights
    for row, label, weight in zip(dense.tolist(), labels, weights.tolist(), strict=True):
        scale = factor(row, constant, norm_bound)
        z = [v * scale for v in row] + ([constant * (1.0 - SLACK)] if constant else [])
        margin = 0.0
        for entry, own in zip(z, model, strict=True):
            margin += entry * own
        q = weight * gradient(loss, margin, label)
        h = weight * second_derivative(loss, margin, label)
        pairs = [(j, k) for j in range(len(z)) for k in range(j, len(z))]
        products = [z[j] * z[k] * (1.0 if j == k else math.sqrt(2.0)) for j, k in pairs]
        sums = [int(q * entry * units.gradient) for entry in z]
        sums += [int(h * product * units.curvature) for product in products]
        if units.squares:
            sums += [int(q * q * product * units.squares) for product in products]
        found.append(sums)
    return np.array(found, dtype=object)


def named_moments(dense, model, offsets, labels, loss, units, weights=None):
    """Return what each record adds to the sums of a named column, in integer units."""
    found, weights = [], np.ones(len(dense)) if weights is None else weights
    for row, label, weight in zip(
        np.asarray(dense).tolist(), labels, weights.tolist(), strict=True
    ):
        margin, z, x = np.dot(row, model) + offsets
        z, x = min(max(z, -1.0), 1.0), min(max(x, -1.0), 1.0)
        q = weight * gradient(loss, margin, label)
        sums = (
            -q * z * units.gradient,
            weight * z * x * units.curvature,
            (q * z) ** 2 * units.squares,
        )
        found.append([int(total) for total in sums])
    return np.array(found, dtype=object)


def noise(stream, size, scales):
    """Return the noise of all steps, shape (T, size): a stream for each block of coordinates."""
    values = np.zeros((len(scales), size), dtype=np.int64)
    blocks = range(0, size, BLOCK)
    for begin, buffer in zip(blocks, word_buffers(stream, len(blocks)), strict=True):
        for row, scale in zip(values, scales, strict=True):
            noisy(noise_table(scale), buffer, row[begin : begin + BLOCK])
    return values


def entered(gradients, scales, most, last, sizes):
    """Return the columns that have entered by noisy gradients of shape (D, K), in order."""
    columns, is_fresh, some, estimates, variance = [], False, [], None, 0.0
    length = max(3, last // most)
    for step, (own, scale) in enumerate(zip(gradients, scales, strict=True), 1):
        if len(columns) == most:
            return columns
        some.append((own, scale))
        if step % length and step < last:
            continue
        parts = [(0.8 if is_fresh else 1.0) ** k for k in reversed(range(len(some)))]
        means = sum(part * own for part, (own, _) in zip(parts, some, strict=True)) / sum(parts)
        noise = sum((part * scale) ** 2 for part, (_, scale) in zip(parts, some, strict=True))
        noise /= sum(parts) ** 2
        if estimates is None:
            estimates, variance = means, noise
        else:
            others = [j for j in range(len(means)) if j not in columns]
            squares = (means - estimates)[others] ** 2
            by_noise = (noise + variance) * (1.0 + 2.0 * math.sqrt(2.0 / squares.size))
            before = variance + max(0.0, squares.mean() - by_noise)
            part = before / (before + noise) if noise else 1.0
            estimates, variance = estimates + part * (means - estimates), part * noise
        rounds, some, is_fresh = (last - step) // length + 1, [], False
        lengths = [math.sqrt(sum(x * x for x in row)) for row in estimates]
        clear = 6.0 * math.sqrt(variance * estimates.shape[1])
        for _ in range(math.ceil((most - len(columns)) / rounds)):
            others = [j for j in range(len(lengths)) if j not in columns]
            known = [j for j in others if lengths[j] > clear]
            if known:
                columns.append(max(known, key=lambda j: lengths[j] / sizes[j]))
            elif step >= last:
                columns.append(max(others, key=lambda j: lengths[j]))
            is_fresh |= bool(known)
    return columns


def descend(
    dense,
    labels,
    schedule,
    added,
    loss,
    unit,
    *,
    constant=0.0,
    start=None,
    scale_exponents=None,
    most=0,
    sizes=None,
    constant_steps=1.0,
):
    """Return all iterates, shape (T, size), and the average that is released.

    A halved column's weight moves as much less. `most`: how many columns enter; 0 for all.
    `constant_steps`: how many times as long the steps of the constant are.
    """
    n_columns = np.shape(dense)[1]
    size = (np.shape(dense)[1] + bool(constant)) * loss.n_outputs
    halves = [1.0] * (size // loss.n_outputs)
    if scale_exponents is not None:
        halves[: scale_exponents.size] = (0.5**scale_exponents).tolist()
    halves[n_columns:] = [constant_steps] * len(halves[n_columns:])
    weights = [0.0] * size if start is None else list(start)
    velocity, iterates, gradients = [0.0] * size, [], []
    inside, last = [*range(size // loss.n_outputs)], schedule.first_averaged - 1
    if most:
        weights[: n_columns * loss.n_outputs] = [0.0] * (n_columns * loss.n_outputs)
    for step in range(schedule.n_steps):
        if most:
            taken = entered(gradients, schedule.noise_scales[:step], most, last, sizes)
            inside = [*taken, *range(n_columns, size // loss.n_outputs)]
        options = {"constant": constant, "scale_exponents": scale_exponents}
        parts = contributions(dense, labels, weights, loss, unit, **options)
        totals = parts.sum(axis=0) + added[step]
        for k in range(size):
            velocity[k] = schedule.momentum * velocity[k] + float(totals[k]) * (1.0 / unit)
            if k // loss.n_outputs in inside:
                weights[k] -= schedule.step_size * halves[k // loss.n_outputs] * velocity[k]
        gradients.append(np.reshape(totals, (-1, loss.n_outputs))[:n_columns] / unit)
        iterates.append(list(weights))
    averaged = [0.0] * size
    ends = iterates[last:]
    for iterate in ends:
        averaged = [a + w for a, w in zip(averaged, iterate, strict=True)]
    return np.array(iterates), np.array(averaged) / float(len(ends))


def on_the_grid(margins, bits):
    """Return margins rounded as `dplasso.gradient_descent.margins` does, in so many words."""
    lengths = 1.0 + np.minimum(np.abs(margins), 2.0**10) * 64.0
    step = 2.0 ** (np.floor(np.log2(lengths)) - bits)
    return np.sign(margins) * (np.floor(lengths / step + 0.5) * step - 1.0) / 64.0

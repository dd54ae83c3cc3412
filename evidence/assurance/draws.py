"""Draw from every private structure with fresh entropy and compare with the closed form.

The gradients are those of `evidence.reference.gradients`: ties, zeros, limits of 64 bits, StatDP's
patterns, exponents over twenty orders, with and without updates before. A p-value below 1e-6 fails:
a right structure is accused in one run of several thousand. As a check of power, the same test must
reject an exponent that is a tenth off.
"""

from typing import Any

import numpy as np

from evidence.reference.draws import (
    ALARM,
    change,
    count_vertices,
    draw,
    fill,
    p_value,
    vertex_probabilities,
)
from evidence.reference.gradients import EXPONENT, HARD, PRIVATE, random_gradients

TITLE = "selection distributions"
QUICK = {"draws": 20_000}
# Noise for every vertex at every draw: the reference gets fewer.
_SLOWER = {"noisy-max": 10}


def p_of(name: str, alpha: Any, exponent: float, draws: int, claimed: float | None = None) -> float:
    """Return the p-value of so many draws from a structure, against a claimed exponent's form."""
    selector = PRIVATE[name](alpha.size, exponent)
    target, n_columns = alpha.copy(), alpha.size
    # Half of the coordinates arrive by updates, as in training.
    start = target.copy()
    moved = np.arange(0, n_columns, 2)
    start[moved] = -(start[moved] // 3)
    fill(selector, start)
    change(selector, start, moved, target[moved])
    expected = vertex_probabilities(target, exponent if claimed is None else claimed)
    drawn = draw(selector, start, None, draws)
    return float(p_value(count_vertices(n_columns, *drawn), expected))


def measure(*, draws: int = 500_000) -> dict[str, Any]:
    """Draw from each structure on each set of gradients."""
    cases = HARD | {
        f"random, {size} columns": (random_gradients(size, seed=size), EXPONENT)
        for size in (2, 17, 300)
    }
    structures: dict[str, Any] = {}
    for name in PRIVATE:
        own = draws // _SLOWER.get(name, 1)
        values = {
            case: p_of(name, alpha, exponent, own) for case, (alpha, exponent) in cases.items()
        }
        worst = min(values, key=lambda case: values[case])
        wrong, most = random_gradients(17, seed=17), max(own, 20_000)
        structures[name] = {
            "cases": len(values),
            "draws": own * len(values),
            "smallest_p_value": values[worst],
            "its_case": worst,
            "p_value_of_an_exponent_a_tenth_off": p_of(name, wrong, EXPONENT, most, 1.1 * EXPONENT),
        }
    smallest = min(found["smallest_p_value"] for found in structures.values())
    power = max(found["p_value_of_an_exponent_a_tenth_off"] for found in structures.values())
    return {
        "passed": smallest > ALARM > power,
        "draws": sum(found["draws"] for found in structures.values()),
        "smallest_p_value": smallest,
        "power": power,
        "alarm": ALARM,
        "structures": structures,
    }


def section(results: list[dict[str, Any]]) -> list[str]:
    """Return the counts and the smallest p-value, in words."""
    (found,) = results
    cases = sum(one["cases"] for one in found["structures"].values())
    return [
        f"{found['draws']:,} vertices by {len(found['structures'])} structures on {cases} sets "
        f"of gradients; smallest p-value {found['smallest_p_value']:.2g} (alarm below "
        f"{found['alarm']:g}). An exponent 10 % off: p below {max(found['power'], 1e-300):.0e}"
    ]

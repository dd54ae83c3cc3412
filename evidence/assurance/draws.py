"""Draw from every private structure with fresh entropy and compare with the closed form.

    python -m evidence.assurance.draws --json

The gradients are those of `tests/selection/cases.py`: ties, zeros, limits of 64 bits, StatDP's
patterns, exponents over twenty orders, with and without updates before. A p-value below 1e-6 fails:
a right structure is accused in one run of several thousand. As a check of power, the same test must
reject an exponent that is a tenth off.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

# The tests' own helpers name each other from their folder, as under pytest.
sys.path.append(str(Path(__file__).resolve().parents[2] / "tests"))

from dplasso.privacy.randomness import random_stream
from reference import vertex_probabilities
from selection.cases import EXPONENT, HARD, PRIVATE, random_gradients
from selection.drivers import ALARM, change, count_vertices, draw, fill, p_value

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
    drawn = draw(selector, start, random_stream(None), draws)
    return float(p_value(count_vertices(n_columns, *drawn), expected))


def main(arguments: list[str] | None = None) -> int:
    """Run the command; the exit code is 1 if a structure fails or the power check does."""
    parser = argparse.ArgumentParser(prog="python -m evidence.assurance.draws", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--draws", type=int, default=500_000, help="of each structure and case")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args(arguments)
    began = time.perf_counter()
    cases = HARD | {
        f"random, {size} columns": (random_gradients(size, seed=size), EXPONENT)
        for size in (2, 17, 300)
    }
    structures: dict[str, Any] = {}
    for name in PRIVATE:
        draws = given.draws // _SLOWER.get(name, 1)
        values = {
            case: p_of(name, alpha, exponent, draws) for case, (alpha, exponent) in cases.items()
        }
        worst = min(values, key=lambda case: values[case])
        wrong = random_gradients(17, seed=17)
        structures[name] = {
            "cases": len(values),
            "draws": draws * len(values),
            "smallest_p_value": values[worst],
            "its_case": worst,
            "p_value_of_an_exponent_a_tenth_off": p_of(
                name, wrong, EXPONENT, max(draws, 20_000), 1.1 * EXPONENT
            ),
        }
        if not given.json:
            print(name, structures[name], flush=True)
    passed = all(
        found["smallest_p_value"] > ALARM and found["p_value_of_an_exponent_a_tenth_off"] < ALARM
        for found in structures.values()
    )
    report = {
        "command": f"python -m evidence.assurance.draws --draws {given.draws}",
        "passed": passed,
        "draws": sum(found["draws"] for found in structures.values()),
        "smallest_p_value": min(found["smallest_p_value"] for found in structures.values()),
        "alarm": ALARM,
        "structures": structures,
        "seconds": round(time.perf_counter() - began, 1),
    }
    print(json.dumps(report) if given.json else "passed" if passed else "FAILED")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())

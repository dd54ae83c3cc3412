"""``dplasso show``: what is inside a model file."""

from pathlib import Path
from textwrap import wrap

from dplasso.cli.options import examples
from dplasso.cli.output import (
    out,
    print_facts,
    print_json,
    print_promise,
    print_text,
    print_weights,
)

EXAMPLES = examples(
    "dplasso show model.npz",
    "dplasso show model.npz --top 50 --explain",
    "dplasso show model.npz --json",
    note="All of this is in the model file: whoever has the file may see it.",
)


def show(model: Path, top: int = 20, explain: bool = False, as_json: bool = False) -> None:
    """Name a model's largest weights, its settings and what it promises.

    Options
    -------
    top : K >= 0
        How many of the largest weights.
    """
    from dplasso.model import read_model
    from dplasso.model.report import model_facts
    from dplasso.model.weights import weights_of

    held = read_model(model)
    weights = weights_of(held)
    heaviest = weights.top(top).rows()
    if as_json:
        schema = None if held.origin is None else held.origin.schema
        print_json(
            {
                "model": model,
                "facts": model_facts(held, weights),
                "n_features": held.n_features,
                "params": {**held.params, "classes": held.classes.tolist()},
                "schema": None if schema is None else schema.to_json(),
                "n_nonzero": len(weights),
                "n_clear": None if weights.clear is None else int(weights.clear.sum()),
                "weights": heaviest,
                "intercept": held.release.coefficients()[1][0],
                "privacy": held.statement.to_dict(),
            }
        )
        return
    facts = model_facts(held, weights)
    indent = " " * (max(map(len, facts)) + 2)
    for name in {"schema", "settings"} & facts.keys():
        lines = wrap(facts[name], max(out.width - len(indent), 40), break_on_hyphens=False)
        facts[name] = f"\n{indent}".join(lines)
    print_facts({"model": str(model), **facts})
    print_text()
    print_weights(heaviest, f"The {len(heaviest)} largest of {len(weights):,} weights")
    print_text()
    print_promise(held.statement, explain=explain)

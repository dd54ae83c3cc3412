"""How many bytes a model takes at most, from public numbers: for room that is held in advance."""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplasso.encoding.origin import Origin
from dplasso.fit.method import Method
from dplasso.model.release import n_outputs_of
from dplasso.privacy.statement import Accounted

# The statement, the other parameters, and what the container adds.
_REST = 2**16
# A drawn vertex and its sign; a number.
_VERTEX, _NUMBER = 9, 8


def model_bytes(
    method: Method,
    mechanism: Accounted,
    n_features: int,
    classes: NDArray[Any],
    feature_names: NDArray[np.object_] | None = None,
    origin: Origin | None = None,
) -> int:
    """Return how large the model file of a private fit can be."""
    n_outputs = n_outputs_of(classes.size)
    vertices, numbers = method.released_numbers(mechanism, n_features, n_outputs)
    header = 0 if feature_names is None else len(json.dumps([str(name) for name in feature_names]))
    if origin is not None:
        header += len(json.dumps(origin.to_json()))
    # Labels stand in an array and, escaped, among the parameters; so may a weight of each.
    header += 4 * classes.nbytes + 64 * max(2, classes.size)
    return _REST + header + _VERTEX * vertices + _NUMBER * (numbers + 4 * n_outputs)

"""A pipeline as one ONNX graph: the steps before the model by skl2onnx, the model by ours."""

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from dplasso.errors import ParameterError, need
from dplasso.estimators.onnx_graph import OPSET
from dplasso.estimators.pipeline_steps import FittedAnew
from dplasso.estimators.record_wise import check_record_wise, chosen, every_step, split


def to_onnx(model: Any, example: Any = None) -> Any:
    """Return a fitted model, or a pipeline that ends in one, as one ONNX graph.

    The graph of a pipeline takes what its first step takes: one input for each column of a table,
    or ``X``. Its outputs are those of the model's own `to_onnx`. A `FeatureHasher` becomes an
    operator that only onnxruntime has.

    Parameters
    ----------
    model : estimator, PrivateSearch or Pipeline
        Fitted. The steps before the last learn nothing from the records, and skl2onnx knows them.
    example : array-like or table, default=None
        A row or more as the first step takes them, for the names and types of columns; a public or
        made-up row does. Only a pipeline needs it.

    Returns
    -------
    onnx.ModelProto
        `SerializeToString` writes it.

    Raises
    ------
    ValueError
        If a step cannot be part of a graph, such as `PublicEncoder` and `HashingVectorizer`.
    MissingExtraError
        If onnx or skl2onnx is not installed.
    sklearn.exceptions.NotFittedError
        Before `fit`.
    """
    model = chosen(model)
    parts = split(model)
    if parts is None:
        return model.to_onnx()
    steps, last = parts
    check_record_wise(steps)
    back = chosen(last).to_onnx()
    if not len(steps):
        return back
    if example is None:
        raise ParameterError("`example` is missing: give a row as the first step takes it")
    need("skl2onnx", "a graph of a pipeline")
    import onnx

    front = _graph_of(steps, example)
    front.ir_version = back.ir_version
    back = onnx.compose.add_prefix(back, "model/", rename_inputs=False, rename_outputs=False)
    merged = onnx.compose.merge_models(front, back, io_map=[(front.graph.output[0].name, "X")])
    onnx.checker.check_model(merged)
    return merged


def _graph_of(steps: Pipeline, example: Any) -> Any:
    """Return the graph of the steps; ParameterError, with the step, if there is none."""
    import skl2onnx
    from skl2onnx.common.exceptions import MissingConverter, MissingShapeCalculator

    # Steps of a model file are fitted on what they transform; a graph needs them fitted.
    known, rows = [], example
    for name, step in steps.steps:
        fitted = clone(step.step).fit(rows) if isinstance(step, FittedAnew) else step
        known.append((name, fitted))
        rows = fitted.transform(rows)
    if isinstance(example, list):
        example = np.asarray(example)
        example = example.reshape(-1, 1) if example.ndim == 1 else example
    try:
        return skl2onnx.to_onnx(
            Pipeline(known), example[:1], target_opset={"": OPSET, "ai.onnx.ml": 1}
        )
    except (MissingConverter, MissingShapeCalculator, RuntimeError, NotImplementedError) as error:
        named = [type(step).__name__ for _, step in every_step(steps)]
        missing = [name for name in named if f"{name}'" in str(error) or f"{name} " in str(error)]
        raise ParameterError(
            f"{missing[0] if missing else ' or '.join(named)} cannot be part of an ONNX graph: "
            "skl2onnx has no operator for it; export the last step alone (pipeline[-1].to_onnx()) "
            "and give it the rows that pipeline[:-1].transform makes"
        ) from None

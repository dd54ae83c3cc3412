"""Convert a fitted model, or a pipeline that ends in one, to an ONNX graph."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from dplasso.errors import ParameterError, need
from dplasso.estimators.export import Plain, plain_of
from dplasso.estimators.record_wise import every_step, record_wise_parts

# These versions are from 2020, and every current runtime supports them.
OPSET, _IR = 13, 7
# Smaller than any non-zero length of a row in single precision.
_TINY = 1e-60


class _Graph:
    """The nodes of a graph in order, and their constants; each node has one output."""

    def __init__(self) -> None:
        import onnx

        self._onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any) -> str:
        """Add a constant; return its name."""
        array, name = np.asarray(value), f"constant_{len(self.constants)}"
        array = array.astype(object) if array.dtype.kind in "US" else array
        self.constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def add(self, kind: str, *inputs: Any, out: str = "", **options: Any) -> str:
        """Add a node; return the name of its output. Inputs are names or constants."""
        names = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        out = out or f"{kind}_{len(self.nodes)}"
        self.nodes.append(self._onnx.helper.make_node(kind, names, [out], **options))
        return out

    def cast(self, name: str, kind: str, out: str = "") -> str:
        """Add a conversion to an ONNX type."""
        return self.add("Cast", name, out=out, to=getattr(self._onnx.TensorProto, kind))

    def model(self, outputs: Sequence[tuple[str, int, list[Any]]], n_features: int) -> Any:
        """Return the graph as a checked model; rows are float32."""
        helper, kinds = self._onnx.helper, self._onnx.TensorProto
        rows = helper.make_tensor_value_info("X", kinds.FLOAT, [None, n_features])
        shown = [helper.make_tensor_value_info(*output) for output in outputs]
        graph = helper.make_graph(self.nodes, "dplasso", [rows], shown, self.constants)
        opsets = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(
            graph, producer_name="dplasso", opset_imports=opsets, ir_version=_IR
        )
        self._onnx.checker.check_model(model)
        return model


def to_onnx(model: Any, example: Any = None) -> Any:
    """Return a fitted model, or a pipeline that ends in one, as an ONNX graph.

    The graph of a model has an input ``X`` of float32, shape (N, D), with the rows, and computes in
    double precision. The graph of a pipeline has the inputs of its first step: one for each column
    of a table, or ``X``. The outputs are ``label`` (see `predict`) and ``probabilities``, float32
    (see `predict_proba`). The metadata ``privacy`` contains the privacy statement. A
    `FeatureHasher` becomes an operator that only onnxruntime has.

    Parameters
    ----------
    model : estimator, PrivateSearch or Pipeline
        The fitted model. Other steps of a pipeline must learn nothing from the records, and
        skl2onnx must support them.
    example : array-like or table, default=None
        One or more input rows of a pipeline, for the names and types of columns. Use a public or
        made-up row.

    Returns
    -------
    onnx.ModelProto
        The graph; its method `SerializeToString` returns the content of an ONNX file.

    Raises
    ------
    ValueError
        If a step cannot be part of a graph, such as `PublicEncoder` and `HashingVectorizer`, or if
        there are more than 10^8 columns.
    MissingExtraError
        If onnx or skl2onnx is not installed.
    """
    steps, last = record_wise_parts(model)
    back = _model_graph(last)
    if steps is None:
        return back
    if example is None:
        raise ParameterError("`example` is missing: pass an input row of the pipeline")
    need("skl2onnx", "a graph of a pipeline")
    import onnx

    front = _steps_graph(steps, example)
    front.ir_version = back.ir_version
    back = onnx.compose.add_prefix(back, "model/", rename_inputs=False, rename_outputs=False)
    merged = onnx.compose.merge_models(front, back, io_map=[(front.graph.output[0].name, "X")])
    onnx.checker.check_model(merged)
    return merged


def _model_graph(fitted: Any) -> Any:
    """Return the graph of a fitted model with any number of classes or labels."""
    plain = plain_of(fitted)
    need("onnx", "a graph")
    import onnx

    graph, many = _Graph(), fitted.privacy_.many_labels
    rows = _rows(graph, graph.cast("X", "DOUBLE"), plain)
    kept: Any = plain.kept if plain.kept.size else slice(None)
    weights = np.ascontiguousarray(plain.weights[:, kept].T)
    margins = graph.add("Add", graph.add("MatMul", rows, weights), plain.intercept)
    probabilities = _probabilities(graph, margins, plain, many=many)
    n_outputs = len(fitted.classes_)
    if many:
        label = graph.add("Greater", margins, np.zeros(1))
        label = graph.cast(label, "INT64", out="label")
        kind, shape = onnx.TensorProto.INT64, [None, n_outputs]
    else:
        place = graph.add("ArgMax", probabilities, axis=1, keepdims=0)
        classes = graph.constant(fitted.classes_)
        graph.add("Gather", classes, place, out="label")
        kind, shape = graph.constants[-1].data_type, [None]
    graph.cast(probabilities, "FLOAT", out="probabilities")
    shown = ("probabilities", onnx.TensorProto.FLOAT, [None, n_outputs])
    model = graph.model([("label", kind, shape), shown], fitted.n_features_in_)
    onnx.helper.set_model_props(model, {"privacy": fitted.privacy_.to_json(indent=None)})
    return model


def _rows(graph: _Graph, rows: str, plain: Plain) -> str:
    """Return the kept columns of rows, clipped or scaled, for the margins."""
    if plain.kept.size:
        rows = graph.add("Gather", rows, plain.kept.astype(np.int64), axis=1)
    if plain.bound is not None:
        return graph.add("Clip", rows, np.float64(-plain.bound), np.float64(plain.bound))
    if plain.divisors.size:
        rows = graph.add("Div", rows, plain.divisors)
    length = graph.add("ReduceL2", rows, axes=[1], keepdims=1)
    least = _TINY if plain.norm_bound is None else plain.norm_bound
    return graph.add("Div", rows, graph.add("Max", length, np.float64(least)))


def _probabilities(graph: _Graph, margins: str, plain: Plain, *, many: bool) -> str:
    """Return probabilities: ``p_j max(1, d_j / C)`` divided by their sum (docs/multiclass.md).

    Here p is the softmax of the margins; for two classes, or a single label, of 0 and the margin.
    """
    if many:
        margins = graph.add("Unsqueeze", margins, np.array([2]))
    if many or plain.weights.shape[0] == 1:
        margins = graph.add("Concat", graph.add("Mul", margins, np.zeros(1)), margins, axis=-1)
    p = graph.add("Softmax", margins, axis=-1)
    if not plain.is_softmax:
        far = graph.add("Sub", np.ones(1), p)
        if plain.by_length:
            squares = graph.add("ReduceSumSquare", p, axes=[-1], keepdims=1)
            # |p - e_j|^2 = |p|^2 - 2 p_j + 1 = |p|^2 - 1 + 2 (1 - p_j)
            both = graph.add("Add", graph.add("Mul", far, np.full(1, 2.0)), squares)
            far = graph.add(
                "Sqrt", graph.add("Max", graph.add("Sub", both, np.ones(1)), np.zeros(1))
            )
        excess = graph.add("Max", graph.add("Div", far, np.full(1, plain.loss_bound)), np.ones(1))
        weight = graph.add("Mul", p, excess)
        p = graph.add("Div", weight, graph.add("ReduceSum", weight, np.array([-1]), keepdims=1))
    if not many:
        return p
    return graph.add("Gather", p, np.array(1), axis=2)


def _steps_graph(steps: Pipeline, example: Any) -> Any:
    """Return the graph of the steps; `ParameterError` if a step has none."""
    import skl2onnx
    from skl2onnx.common.exceptions import MissingConverter, MissingShapeCalculator

    # Fit the steps from a model file, because a graph needs fitted steps.
    fitted_steps, rows = [], example
    for name, step in steps.steps:
        fitted = clone(step.step).fit(rows) if hasattr(step, "step") else step
        fitted_steps.append((name, fitted))
        rows = fitted.transform(rows)
    if isinstance(example, list):
        example = np.asarray(example)
        example = example.reshape(-1, 1) if example.ndim == 1 else example
    try:
        return skl2onnx.to_onnx(
            Pipeline(fitted_steps), example[:1], target_opset={"": OPSET, "ai.onnx.ml": 1}
        )
    except (MissingConverter, MissingShapeCalculator, RuntimeError, NotImplementedError) as error:
        named = [type(step).__name__ for _, step in every_step(steps)]
        missing = [name for name in named if f"{name}'" in str(error) or f"{name} " in str(error)]
        raise ParameterError(
            f"{missing[0] if missing else ' or '.join(named)} cannot be part of an ONNX graph, "
            "because skl2onnx has no operator for it; export only the last step "
            "(pipeline[-1].to_onnx()), and pass it the output of pipeline[:-1].transform"
        ) from None

"""Export a fitted model as plain scikit-learn or as an ONNX graph, for use without this package."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from dplasso.errors import ParameterError, need
from dplasso.estimators.predictions import loss_of
from dplasso.estimators.record_wise import every_step, record_wise_parts
from dplasso.model.linear import reading_for

# These versions are from 2020, and every current runtime supports them.
OPSET, _IR = 13, 7
# A limit that no entry reaches in practice, and whose reciprocal is exact.
_UNLIMITED = 2.0**500
# Smaller than any non-zero length of a row in single precision.
_TINY = 1e-60


class Plain(NamedTuple):
    """A fitted classifier as plain arrays; the `kept` columns are read, all if these are none.

    Entries are clipped to `bound`, or else rows less `centres` are clipped to `limits`, and divided
    by the `divisors` of columns and by their length, which is at least `norm_bound`. The residual
    bound C, `loss_bound`, bounds a record's residuals together if `by_length` (docs/multiclass.md).
    """

    kept: NDArray[np.integer]
    bound: float | None
    norm_bound: float | None
    centres: NDArray[np.float64]
    limits: NDArray[np.float64]
    divisors: NDArray[np.float64]
    weights: NDArray[np.float64]
    intercept: NDArray[np.float64]
    loss_bound: float
    by_length: bool

    @property
    def is_softmax(self) -> bool:
        """Whether probabilities are the softmax or sigmoid of margins, as without clipping."""
        return self.loss_bound >= (math.sqrt(2.0) if self.by_length else 1.0)


def plain_of(fitted: Any) -> Plain:
    """Return a fitted classifier as plain arrays; ValueError for more than 10^8 columns."""
    check_is_fitted(fitted, "coef_")
    scaling, bound = reading_for(fitted.model_)
    kept, exponents = scaling.kept, scaling.scale_exponents
    weights = np.atleast_2d(fitted.weights(dense=True)) * math.sqrt(1.0 - scaling.constant**2)
    divisors = np.exp2(exponents, dtype=np.float64) if exponents.any() else np.zeros(0)
    if divisors.size:
        weights[:, kept if kept.size else slice(None)] *= divisors
    terms = loss_of(fitted.model_).link_terms
    read = kept, bound, scaling.norm_bound, scaling.centres, scaling.limits, divisors
    return Plain(*read, weights, fitted.intercept_, *terms)


def to_sklearn(self: Any, *, scaling: bool = True) -> Any:
    """Return the model as a fitted, dense scikit-learn model that does not need this package.

    Its last step is the linear model, with `coef_`, and with the same labels and margins. It has
    probabilities only if these are the sigmoid or softmax of the margins, which they are not in
    most private fits. `to_onnx` exports those.

    Parameters
    ----------
    scaling : bool, default=True
        Whether to include the centring, scaling or clipping of rows. Without it, entries must be
        within `feature_bound`, or rows must have length 1 in the columns with weights.

    Returns
    -------
    Pipeline, or its last step without `scaling`
        The fitted model.

    Raises
    ------
    ValueError
        For many labels or more than 10^8 columns. With `scaling`, also if `row_norm` is a number
        or rows keep their lengths: no transformer of scikit-learn scales only the longer rows.
    """
    # Imported here because the imports take longer than a small fit.
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LogisticRegression, SGDClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Normalizer, StandardScaler

    plain = plain_of(self)
    if self.privacy_.many_labels:
        raise ValueError("scikit-learn has no linear model for many labels; use to_onnx() instead")
    if scaling and plain.norm_bound is not None:
        raise ParameterError(
            "scikit-learn has no transformer that shortens only long rows, as `row_norm` or "
            "centred columns need it: use to_onnx(), or pass scaling=False and divide the rows by "
            f"max({plain.norm_bound:.9g}, their length) yourself"
        )
    # Clipping needs no selection of columns, because it treats all columns alike.
    selects = scaling and plain.kept.size > 0 and plain.bound is None
    linear = LogisticRegression() if plain.is_softmax else SGDClassifier(loss="hinge")
    linear.coef_ = plain.weights[:, plain.kept if selects else slice(None)]
    linear.intercept_ = plain.intercept.copy()
    linear.n_iter_ = np.array([self.n_iter_]) if plain.is_softmax else self.n_iter_
    linear.classes_ = self.classes_.copy()
    names = getattr(self, "feature_names_in_", None)
    _set_columns(linear, linear.coef_.shape[1], None if scaling else names)
    if not scaling:
        return linear
    front = Normalizer() if plain.bound is None else _clip(self.n_features_in_, plain.bound)
    steps: list[Any] = [front]
    divisors, centring = plain.divisors, list[Any]()
    if plain.centres.size:
        limits = np.minimum(plain.limits, _UNLIMITED)
        centring = [_clip(limits.size, 1.0)]
        centring[0].scale_, centring[0].min_ = 1.0 / limits, -plain.centres / limits
        divisors = (divisors if divisors.size else 1.0) / limits
    if divisors.size:
        scaler = StandardScaler(with_mean=False)
        scaler.n_features_in_, scaler.scale_, scaler.var_ = divisors.size, divisors, divisors**2
        steps = [*centring, scaler, *steps]
    if selects:
        front = steps[0] if len(steps) == 1 else make_pipeline(*steps)
        steps = [ColumnTransformer([("kept", front, plain.kept.tolist())])]
        steps[0].fit(np.zeros((1, self.n_features_in_)))
    _set_columns(steps[0], self.n_features_in_, names)
    return make_pipeline(*steps, linear)


def _clip(n_features: int, bound: float) -> Any:
    """Return a scaler that clips entries to the bound and does not change others."""
    from sklearn.preprocessing import MinMaxScaler

    corners = np.repeat([[-bound], [bound]], n_features, axis=1)
    scaler = MinMaxScaler(feature_range=(-bound, bound), clip=True).fit(corners)
    # Set the identity exactly, so that rounding does not change entries.
    scaler.scale_, scaler.min_ = np.ones(n_features), np.zeros(n_features)
    return scaler


def _set_columns(step: Any, n_features: int, names: Any) -> None:
    step.n_features_in_ = n_features
    if names is not None:
        step.feature_names_in_ = names


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
    if plain.centres.size:
        rows = graph.add("Min", graph.add("Sub", rows, plain.centres), plain.limits)
        rows = graph.add("Max", rows, -plain.limits)
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

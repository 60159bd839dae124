"""``shap.TreeExplainer`` as code that was written for ``shap`` knows it.

Such code switches by its import::

    from fastpd_sklearn.shap_compat import TreeExplainer

or calls this module ``shap``. It is a module of its own, beside the explainers and not among
them, since its class follows another convention: a scikit-learn estimator takes no model and no
data in its constructor, and names its parameters and results otherwise. Nothing else of the
package needs ``shap``'s names, and whoever starts anew takes
:class:`~fastpd_sklearn.FastPDExplainer`.
"""

from __future__ import annotations

import sys

import numpy as np

from fastpd_sklearn.explainers import Explanation, FastPDExplainer, PathDependentExplainer
from fastpd_sklearn.explainers._checks import check_choice

__all__ = ["TreeExplainer"]

PERTURBATIONS = ("auto", "interventional", "tree_path_dependent")

MODEL_OUTPUTS = ("raw", "probability", "predict", "predict_proba", "decision_function")

TOLERANCE = 1e-6
"""What SHAP values may miss the response by, relative to it, to count as adding up."""


class TreeExplainer:
    """SHAP values of tree ensembles behind the interface of ``shap.TreeExplainer``.

    The values are those of ``shap`` where ``shap``'s are right. These are the differences:

    * All rows of ``data`` are the background. ``shap`` draws 100 of them.
    * ``shap_interaction_values`` work with a background, where ``shap`` returns zeros.
    * Categories work with a background too, and missing values go where the model sends them.
    * ``expected_value`` is set once and never changes: a float, or an array of one number an
      output.
    * Values are float64 throughout, and compared with thresholds as the model's library does.

    Parameters
    ----------
    model : object
        A fitted tree ensemble: see ``FastPDExplainer``.
    data : array-like, data frame or shap masker of shape (n_rows, n_columns), default=None
        The background. Of a masker of ``shap`` the rows that it has kept, 100 if not told
        otherwise: pass the data themselves for all rows.
    model_output : {"raw", "probability", "predict", "predict_proba", \
"decision_function"}, default="raw"
        The response. "raw" is what the trees add up to: the margin of boosted classifiers, the
        probability of forests. Any other has to be the same thing by another name.
    feature_perturbation : {"auto", "interventional", "tree_path_dependent"}, default="auto"
        "interventional" needs ``data``: what :class:`~fastpd_sklearn.FastPDExplainer` does.
        "tree_path_dependent" goes by the covers of the trees, counted anew on ``data`` if there
        are any: what :class:`~fastpd_sklearn.PathDependentExplainer` does. "auto" is
        "interventional" with ``data`` and "tree_path_dependent" without.
    feature_names : list of str, default=None
        Names of the columns in what a call returns; None for the model's or the data's own.

    Attributes
    ----------
    expected_value : float or ndarray of shape (n_outputs,)
        The mean response over the background.
    model : object
    data : array-like or data frame, or None
        The background.
    model_output : str
    feature_perturbation : str
        What "auto" has come to.
    feature_names : list of str or None
    explainer : FastPDExplainer or PathDependentExplainer
        What explains.

    Raises
    ------
    ValueError
        If ``feature_perturbation="interventional"`` has no ``data``, or the trees do not add up
        to ``model_output``.
    TypeError
        If the model is no tree ensemble.

    See Also
    --------
    FastPDExplainer : The same values as a scikit-learn estimator.

    References
    ----------
    S. M. Lundberg et al., "From local explanations to global understanding with explainable AI
    for trees", Nature Machine Intelligence 2 (2020).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from fastpd_sklearn.shap_compat import TreeExplainer
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> model = DecisionTreeRegressor(random_state=0).fit(X, [0.0, 0.0, 0.0, 8.0])
    >>> explainer = TreeExplainer(model, X)
    >>> explainer.expected_value
    2.0
    >>> explainer.shap_values(X[3:])
    array([[3., 3.]])
    >>> explainer.shap_interaction_values(X[3:])
    array([[[2., 1.],
            [1., 2.]]])
    """

    def __init__(
        self,
        model,
        data=None,
        model_output="raw",
        feature_perturbation="auto",
        feature_names=None,
    ):
        _check_model_output(model_output)
        check_choice("feature_perturbation", feature_perturbation, PERTURBATIONS)
        self.model = model
        self.data = _rows_of_masker(data)
        if feature_perturbation == "auto":
            has_data = self.data is not None
            feature_perturbation = "interventional" if has_data else "tree_path_dependent"
        if feature_perturbation == "interventional" and self.data is None:
            raise ValueError(
                "feature_perturbation='interventional' averages over a background, and data=None; "
                "pass data, or take 'tree_path_dependent' (or 'auto') to go by the trees' covers"
            )
        self.feature_perturbation = feature_perturbation
        self.model_output = model_output
        self.explainer = self._fit("shap")
        _check_response(model_output, self.explainer.response_method_)
        self.feature_names = self._check_names(feature_names)
        self.expected_value = self._expected_value()
        self._interactions = None

    def shap_values(self, X, y=None, tree_limit=None, approximate=False, check_additivity=True):
        """SHAP values of rows.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
            Or one row of shape (n_columns,).
        y : object
            Not used: ``shap`` needs it for losses, which are not explained here.
        tree_limit : None
            Other values are refused: explain a model of fewer trees instead.
        approximate : False
            True is refused: exact values are fast.
        check_additivity : bool, default=True
            Whether to raise if the values do not add up to the response.

        Returns
        -------
        ndarray of shape (n_rows, n_columns) or (n_rows, n_columns, n_outputs)
            Three axes if there are several outputs. A binary classifier has two where its trees
            hold probabilities (scikit-learn's trees and forests) and one where they add up to a
            margin. Without the first axis for one row.

        Raises
        ------
        ValueError
            For what is refused.
        ArithmeticError
            If the values do not add up.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from fastpd_sklearn.shap_compat import TreeExplainer
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
        >>> TreeExplainer(model, X).shap_values(X)
        array([[-1., -1.],
               [-3.,  1.],
               [ 1., -3.],
               [ 3.,  3.]])
        """
        _refuse(tree_limit, approximate)
        rows, is_single = _as_rows(X)
        values = self._doubled(self._explain(rows, check_additivity).values)
        return values[0] if is_single else values

    def shap_interaction_values(self, X, y=None, tree_limit=None):
        """SHAP interaction values of rows, over the background too.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
            Or one row of shape (n_columns,).
        y : object
            Not used.
        tree_limit : None
            Other values are refused.

        Returns
        -------
        ndarray of shape (n_rows, n_columns, n_columns), or with a last axis of n_outputs
            Symmetric; a row of a matrix adds up to the feature's SHAP value. Half of a pair's
            interaction stands in each of its two places.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from fastpd_sklearn.shap_compat import TreeExplainer
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
        >>> explainer = TreeExplainer(model, X)
        >>> matrices = explainer.shap_interaction_values(X)
        >>> matrices[3]
        array([[2., 1.],
               [1., 2.]])
        >>> bool(np.allclose(matrices.sum(axis=2), explainer.shap_values(X)))
        True
        """
        _refuse(tree_limit, False)
        rows, is_single = _as_rows(X)
        values = self._doubled(self._explain_interactions(rows).matrices())
        return values[0] if is_single else values

    def __call__(self, X, y=None, interactions=False, check_additivity=True, approximate=False):
        """Explain rows, for ``shap``'s plots.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
        y : object
            Not used.
        interactions : bool, default=False
            Whether to give interaction values.
        check_additivity : bool, default=True
            As in :meth:`shap_values`.
        approximate : False
            As in :meth:`shap_values`.

        Returns
        -------
        shap.Explanation
        """
        _refuse(None, approximate)
        rows, is_single = _as_rows(X)
        if is_single:
            raise ValueError(
                "X is a single row; pass it as a matrix of one row, such as X[:1] or "
                "row.reshape(1, -1)"
            )
        if interactions:
            explanation = self._explain_interactions(rows).to_shap()
        else:
            explanation = self._explain(rows, check_additivity).to_shap()
        if self._is_doubled:
            explanation.values = self._doubled(explanation.values)
            explanation.base_values = np.tile(self.expected_value, (len(explanation.values), 1))
            explanation.output_names = [str(label) for label in self.explainer.classes_]
        if self.feature_names is not None:
            explanation.feature_names = self.feature_names
        return explanation

    def _fit(self, output: str) -> FastPDExplainer | PathDependentExplainer:
        if self.feature_perturbation == "interventional":
            return FastPDExplainer(output=output).fit(self.model, self.data)
        return PathDependentExplainer(output=output).fit(self.model, self.data)

    def _explain(self, rows, check_additivity: bool) -> Explanation:
        explanation = self.explainer.explain(rows)
        if check_additivity:
            _check_sums(explanation)
        return explanation

    def _explain_interactions(self, rows) -> Explanation:
        if self._interactions is None:
            self._interactions = self._fit("shap_interaction")
        return self._interactions.explain(rows)

    @property
    def _is_doubled(self) -> bool:
        """Whether the one probability of a binary classifier stands for two, as in shap."""
        explainer = self.explainer
        return (
            explainer.response_method_ == "predict_proba"
            and len(explainer.intercept_) == 1
            and len(getattr(explainer, "classes_", ())) == 2
        )

    def _doubled(self, values: np.ndarray) -> np.ndarray:
        return np.stack([-values, values], axis=-1) if self._is_doubled else values

    def _expected_value(self) -> float | np.ndarray:
        mean = self.explainer.intercept_
        if self._is_doubled:
            return np.array([1.0 - mean[0], mean[0]])
        return float(mean[0]) if len(mean) == 1 else mean.copy()

    def _check_names(self, feature_names) -> list[str] | None:
        if feature_names is None:
            return None
        names = [str(name) for name in np.ravel(np.asarray(feature_names, dtype=object))]
        if len(names) != self.explainer.n_features_in_:
            raise ValueError(
                f"feature_names has {len(names)} names, and the model has "
                f"{self.explainer.n_features_in_} columns"
            )
        return names


def _rows_of_masker(data):
    """The rows that a masker of shap has kept, else the data as they are."""
    maskers = sys.modules.get("shap.maskers")
    if maskers is None or not isinstance(data, maskers.Masker):
        return data
    if not isinstance(data, maskers.Independent):
        raise TypeError(
            f"data is a shap masker of type {type(data).__name__}, which has no rows to average "
            "over; pass the rows themselves"
        )
    return data.data


def _as_rows(X) -> tuple[object, bool]:
    """Rows, and whether they are a single one that was given without its axis."""
    if getattr(X, "ndim", 2) != 1:
        return X, False
    # A series of pandas keeps the names of the columns.
    return (X.to_frame().T if hasattr(X, "to_frame") else np.asarray(X).reshape(1, -1)), True


def _refuse(tree_limit, approximate) -> None:
    if tree_limit is not None:
        raise ValueError(
            f"tree_limit={tree_limit!r}: the trees that the model predicts with are explained; "
            "explain a model of fewer trees, such as booster[:10] of XGBoost, instead"
        )
    if approximate:
        raise ValueError(
            "approximate=True: Saabas' approximation is not offered; leave it out, since exact "
            "values are fast"
        )


def _check_model_output(model_output) -> None:
    if isinstance(model_output, str) and model_output == "log_loss":
        raise ValueError(
            "model_output='log_loss': trees do not add up to a loss; explain "
            "model_output='raw', or the loss by VanillaPDExplainer and a model whose predict is it"
        )
    check_choice("model_output", model_output, MODEL_OUTPUTS)


def _check_response(model_output: str, response: str) -> None:
    """Refuse a response that is not the one that the trees add up to."""
    wanted = "predict_proba" if model_output == "probability" else model_output
    if wanted in ("raw", response):
        return
    raise ValueError(
        f"model_output={model_output!r}: the trees of this model do not add up to it, so that it "
        "has no exact SHAP values that are fast; explain model_output='raw', or that response by "
        f"VanillaPDExplainer(output='shap', response_method={wanted!r}) on at most 12 features"
    )


def _check_sums(explanation: Explanation) -> None:
    largest = np.max(np.abs(explanation.remainder), initial=0.0)
    response = np.abs(explanation.base_values) + np.abs(explanation.values).sum(axis=1)
    if not largest <= TOLERANCE * max(1.0, np.max(response, initial=0.0)):
        raise ArithmeticError(
            f"SHAP values and expected value miss the response by up to {largest:.3g}; the values "
            "of the model's leaves may be out of the range of floats. check_additivity=False "
            "leaves out this check"
        )

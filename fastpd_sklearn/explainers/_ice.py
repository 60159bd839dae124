"""Individual conditional expectation: the response of every row along a feature."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy import sparse
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from fastpd_sklearn.explainers import _checks, _sources
from fastpd_sklearn.explainers._chunked import Means
from fastpd_sklearn.explainers._columns import read_column
from fastpd_sklearn.explainers._ice_grid import (
    STRATEGIES,
    Axis,
    Facts,
    check_percentiles,
    given_points,
    make_points,
    slopes,
)
from fastpd_sklearn.explainers._local import Draft, LocalExplainer
from fastpd_sklearn.explainers._moves import Responder
from fastpd_sklearn.explainers._passes import Passes, ask_all
from fastpd_sklearn.explainers._players import Players, as_list
from fastpd_sklearn.explainers._protocol import Term
from fastpd_sklearn.explainers._response import Selection, output_columns
from fastpd_sklearn.explainers._surveys import FiniteNumbers, SurveyPass, survey_columns
from fastpd_sklearn.forest import _rows

BLOCK_BYTES, PLACED_BYTES = 2**25, 2**28
"""Size of the curves that are made at a time, and of those that are made at their place."""

BLOCK_ROWS = 2**17
"""The most rows whose curves are made at a time."""

NAME_BYTES = 300
"""What the name of a column takes while names are compared."""


@dataclass(eq=False)
class FittedICE:
    """What :class:`ICEExplainer` works with.

    Parameters
    ----------
    responder : Responder
    players : Players
    axes : list of Axis
    selection : Selection
    derivative : bool
    tags : dict of str to bool
        What the model says of its input.
    """

    responder: Responder
    players: Players
    axes: list[Axis]
    selection: Selection
    derivative: bool
    tags: dict[str, bool]

    @property
    def n_columns(self) -> int:
        """Columns of ``transform``."""
        return sum(len(axis.points) for axis in self.axes) * len(self.selection.outputs)

    def fill(self, X, out: np.ndarray) -> Iterator[int]:
        """Write the curves of rows, side by side.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_columns)
        out : ndarray of shape (n_rows, :attr:`n_columns`)

        Yields
        ------
        int
            How many rows are done, now and then.
        """
        n_rows = X.shape[0]
        X = X.tocsr() if sparse.issparse(X) else X
        is_plain = self._is_plain(out)
        largest = max(len(axis.all_points) for axis in self.axes) * self.responder.n_outputs
        step = (PLACED_BYTES if is_plain else BLOCK_BYTES) // (8 * largest)
        step = max(1, min(step, BLOCK_ROWS))
        held = self._held()
        for start in range(0, n_rows, step):
            part = slice(start, min(n_rows, start + step))
            rows = X if step >= n_rows else _rows.take(X, part)
            places = self.places(out[part])
            if is_plain:
                for _ in self.responder.curves(rows, held, places.__getitem__):
                    pass
            else:
                self._fill_shown(rows, held, places)
            yield part.stop

    def _is_plain(self, out: np.ndarray) -> bool:
        """Whether curves are shown as they are, so that they can be made at their place."""
        every = len(self.selection.outputs) == self.responder.n_outputs
        every = every and self.selection.sign == 1.0 and self.selection.offset == 0.0
        is_own = all(axis.anchor is None for axis in self.axes) and not self.derivative
        return every and is_own and out.dtype == np.float64 and out.flags.aligned

    def places(self, out: np.ndarray) -> list[np.ndarray]:
        """The parts of an array for the axes, as views of shape (n_outputs, n_rows, n_points)."""
        n_outputs, stop, parts = len(self.selection.outputs), 0, []
        for axis in self.axes:
            start, stop = stop, stop + len(axis.points) * n_outputs
            part = out[:, start:stop].reshape(len(out), len(axis.points), n_outputs)
            parts.append(part.transpose(2, 0, 1))
        return parts

    def _fill_shown(self, rows, held, places: list[np.ndarray]) -> None:
        """Write curves as they are asked for, which come from those of all outputs."""
        shape = self.responder.n_outputs, rows.shape[0]

        def room(k: int) -> np.ndarray:
            return np.empty((*shape, len(self.axes[k].all_points)))

        curves = self.responder.curves(rows, held, room)
        for place, axis, each in zip(places, self.axes, curves, strict=True):
            place[:] = self._shown(each, axis)

    def averages(self, X, weights: np.ndarray) -> Iterator[np.ndarray]:
        """The mean curve along each axis, shape (n_outputs, n_points)."""
        sums = self.responder.sums(X, self._held(), weights)
        for axis, total in zip(self.axes, sums, strict=True):
            yield self._shown(total / weights.sum(), axis)

    def _held(self) -> list:
        """The axes' columns and points, as the responder takes them."""
        return self.responder.hold([(axis.column, axis.all_points) for axis in self.axes])

    def _shown(self, curves: np.ndarray, axis: Axis) -> np.ndarray:
        """Curves, points last, as they are asked for; it is all affine, and so of means as well."""
        shown = np.moveaxis(self.selection.response(np.moveaxis(curves, 0, -1)), -1, 0)
        if axis.anchor is not None:
            shown = shown[..., :-1] - shown[..., -1:]
        return slopes(shown, axis.points) if self.derivative else shown


@dataclass(frozen=True, eq=False)
class Settings:
    """What is asked for of columns, by their numbers.

    Parameters
    ----------
    given : dict of int to array-like
        Points.
    anchors : dict of int to object
        Values at which curves are zero.
    categorical : frozenset of int
        Columns of numbers that are categories.
    """

    given: dict[int, object]
    anchors: dict[int, object]
    categorical: frozenset[int]


class ICEExplainer(LocalExplainer):
    """Explain any model by the response of each row along its features.

    The curve of a row and a feature says what the model would respond if the feature had other
    values, all else being the row's own. Where curves are not parallel, the feature interacts
    with others. Partial dependence is the mean of the curves.

    Tree ensembles are not called for this: curves are read off the trees, also for responses
    that are a function of their sum, such as probabilities of a boosted classifier.

    Parameters
    ----------
    estimator : object, default=None
        The model: fitted by ``fit(X, y)``, or left as it is if it is a ``FrozenEstimator``.
        Not needed for ``fit(model, background)``.
    features : list of int or str, default=None
        Columns by number or name. None: all of them.
    grid_resolution : int or "exact", default=100
        The most points of a column of numbers; all values that occur if they are fewer.
        "exact", for tree ensembles, is one point in each piece between thresholds: the
        complete step functions.
    percentiles : tuple of float, default=(0.05, 0.95)
        Shares of the background below the ends of a grid.
    strategy : {"uniform", "quantile", "unique"}, default="uniform"
        Whether points are equally spaced between the percentiles, as scikit-learn has them,
        quantiles, or all values that occur.
    custom_values : dict of int or str to array-like, default=None
        Points of some columns, instead of those of ``strategy``. NaN stands for missing.
    categorical_features : list of int or str, default=None
        Columns of numbers that are categories: all that occur are points. Columns of labels are
        always categorical; None adds those that a tree ensemble is known to split by category.
    missing : bool, default=False
        Whether a column of numbers with missing values has a point more, NaN.
    centered : bool or dict of int or str to value, default=False
        Whether curves start at zero (c-ICE); a dict says at which value of a feature they are
        zero, True and features that are not in the dict: at the first point.
    derivative : bool, default=False
        Whether the slopes of the curves are shown instead (d-ICE), by central differences
        between the points.
    target : object, default=None
        A class label, or the number of an output, where the model has several; None for all. A
        binary classifier has one output, that of ``classes_[1]``.
    response_method : {"auto", "raw", "predict", "predict_proba", "decision_function"}, \
default="auto"
        The response to explain. "auto" is the scale on which the trees add up ("raw") for tree
        ensembles that can be read; for other models the first of ``predict_proba`` and
        ``decision_function`` that a classifier has, and ``predict``.
    n_jobs : int or None, default=None
        Threads for tree ensembles; None is the default of OpenMP. Other models' own setting
        rules.
    random_state : int, RandomState instance or None, default=None
        Rows for the check that a tree ensemble was read right.
    verbose : int, default=0
        Whether to print progress.

    Attributes
    ----------
    grid_values_ : tuple of ndarray
        The points of each feature.
    estimator_ : object
        The model that is explained.
    response_method_ : str
        The method of the model whose answer is explained; "raw" if none answers with it.
    terms_ : tuple of tuple of str
        The features, each a tuple of one name.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, where all are strings.
    classes_ : ndarray of shape (n_classes,)
        Class labels; classifiers only.

    See Also
    --------
    ALEExplainer : Effects of features that go together with others.
    FastPDExplainer : The mean of the curves, for tree ensembles.

    Notes
    -----
    The background gives the points alone: rows with weight count alike. Rows in which a feature
    is missing have curves like all others, since a curve does not depend on its own feature.

    References
    ----------
    A. Goldstein, A. Kapelner, J. Bleich, E. Pitkin, "Peeking inside the black box: visualizing
    statistical learning with plots of individual conditional expectation", Journal of
    Computational and Graphical Statistics 24 (2015).

    Examples
    --------
    >>> import numpy as np
    >>> from fastpd_sklearn import ICEExplainer
    >>> class Product:
    ...     def predict(self, X):
    ...         return X[:, 0] * X[:, 1]
    >>> X = np.array([[0.0, 1.0], [1.0, 2.0], [2.0, 3.0]])
    >>> explainer = ICEExplainer(features=[0]).fit(Product(), X)
    >>> explainer.get_feature_names_out()
    array(['x0=0.0', 'x0=1.0', 'x0=2.0'], dtype=object)
    >>> explainer.transform(X)
    array([[0., 1., 2.],
           [0., 2., 4.],
           [0., 3., 6.]])
    >>> explainer.average(X)[0].average
    array([[0., 2., 4.]])
    """

    def __init__(
        self,
        estimator=None,
        *,
        features=None,
        grid_resolution=100,
        percentiles=(0.05, 0.95),
        strategy="uniform",
        custom_values=None,
        categorical_features=None,
        missing=False,
        centered=False,
        derivative=False,
        target=None,
        response_method="auto",
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.estimator = estimator
        self.features = features
        self.grid_resolution = grid_resolution
        self.percentiles = percentiles
        self.strategy = strategy
        self.custom_values = custom_values
        self.categorical_features = categorical_features
        self.missing = missing
        self.centered = centered
        self.derivative = derivative
        self.target = target
        self.response_method = response_method
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _packed_names(self) -> tuple[str, ...]:
        # Where the model itself is called, a pickle without it would be of no use.
        fitted = vars(self).get("_fitted")
        needs_model = fitted is not None and fitted.responder.needs_model
        return () if needs_model else LocalExplainer._packed_names

    def detach(self):
        """Forget the model; explaining goes on without it.

        Returns
        -------
        self : object
            With ``estimator=None`` and without ``estimator_``.

        Raises
        ------
        TypeError
            If the curves are made by calling the model.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from fastpd_sklearn import ICEExplainer
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
        >>> explainer = ICEExplainer(features=[0]).fit(model, X).detach()
        >>> explainer.transform(X[2:])
        array([[0., 0.],
               [0., 8.]])
        """
        if not self._packed_names:
            raise TypeError(
                f"these curves are made by calling {type(self.estimator_).__name__}, so that the "
                "explainer cannot do without it"
            )
        return super().detach()

    # ------------------------------------------------------------------ fit

    def _check_params(self) -> None:
        super()._check_params()
        exact = isinstance(self.grid_resolution, str) and self.grid_resolution == "exact"
        if not exact:
            if isinstance(self.grid_resolution, str):
                raise ValueError(
                    f"grid_resolution={self.grid_resolution!r} should be 'exact' or an int"
                )
            _checks.check_resolution(self.grid_resolution)
        check_percentiles(self.percentiles)
        _checks.check_choice("strategy", self.strategy, STRATEGIES)
        for name in ("missing", "derivative"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise TypeError(f"{name}={getattr(self, name)!r} should be True or False")
        if not isinstance(self.centered, bool | np.bool_ | Mapping):
            raise TypeError(
                f"centered={self.centered!r} should be True, False, or a dict from a feature to "
                "the value at which its curves are zero"
            )
        if exact and self.derivative:
            raise ValueError(
                "grid_resolution='exact' gives step functions, whose derivative is zero between "
                "the jumps; with derivative=True take a number of points"
            )

    def _learn(self, model, background, sample_weight) -> None:
        if _sources.is_source(background):
            passes = self._passes(model, background, sample_weight)
            draft = passes.draft(model)
            self._finish(model, draft)
            settings = self._settings(draft)
            axes = self._passed_axes(passes, draft, settings)
        else:
            draft, X, _ = self._draft(model, background, sample_weight)
            self._finish(model, draft)
            settings = self._settings(draft)
            axes = [
                self._make_axis(j, facts, draft, settings)
                for j, facts in self._held_facts(X, draft, settings)
            ]
        n_columns = sum(len(axis.points) for axis in axes) * len(draft.selection.outputs)
        _checks.check_memory(
            NAME_BYTES * n_columns,
            f"the naming of {n_columns} columns",
            "take fewer `features`, a smaller `grid_resolution`, or fewer `custom_values`",
        )
        labels = [(label,) for axis in axes for label in axis.labels()]
        output_columns(labels, draft.selection)
        self._fitted = FittedICE(
            draft.responder, draft.players, axes, draft.selection, self.derivative, draft.tags
        )
        self.grid_values_ = tuple(axis.points for axis in axes)

    def _find_terms(self, players: Players) -> list[Term]:
        if self.features is None:
            return [(j,) for j in range(len(players))]
        terms = [players.find_term(feature) for feature in as_list(self.features)]
        for term in terms:
            if len(term) > 1:
                raise ValueError(
                    f"features: {players.name(term)!r} names {len(term)} features, and a curve is "
                    "along one; for pairs look at partial_dependence, or at ALEExplainer"
                )
        return terms

    def _settings(self, draft: Draft) -> Settings:
        players = draft.players
        anchors = self.centered if isinstance(self.centered, Mapping) else {}
        listed = draft.responder.categorical
        if self.categorical_features is not None:
            listed = frozenset(players.find(j) for j in as_list(self.categorical_features))
        return Settings(
            self._by_column("custom_values", self.custom_values, players),
            self._by_column("centered", anchors, players),
            listed,
        )

    def _held_facts(self, X, draft: Draft, settings: Settings) -> Iterator[tuple[int, Facts]]:
        """What a background in memory holds, column by column."""
        absent = draft.responder.absent
        for (j,) in draft.terms:
            column = read_column(X, j, as_labels=j in settings.categorical, absent=absent)
            yield j, Facts.of(column)

    def _passed_axes(self, passes: Passes, draft: Draft, settings: Settings) -> list[Axis]:
        """The axes over a background that is gone through chunk by chunk."""
        absent, columns = draft.responder.absent, {j for (j,) in draft.terms}
        is_exact = isinstance(self.grid_resolution, str)
        surveys, ordered = survey_columns(
            passes,
            SurveyPass(
                names={j: draft.players.names[j] for j in sorted(columns)},
                as_labels=settings.categorical,
                absent=absent,
                counted=frozenset() if is_exact else frozenset(columns - settings.given.keys()),
                edges={},
                weighted=False,
            ),
        )
        labels = {j: survey.ordered_labels() for j, survey in surveys.items()}

        def make(j: int, numbers) -> Axis:
            return self._make_axis(
                j, Facts(labels[j], surveys[j].has_missing, numbers), draft, settings
            )

        axes = {j: make(j, None) for j in columns - ordered.keys()}
        questions = {j: partial(make, j) for j in ordered}
        axes |= ask_all(passes, ordered, questions, FiniteNumbers(absent))
        return [axes[j] for (j,) in draft.terms]

    def _make_axis(self, j: int, facts: Facts, draft: Draft, settings: Settings) -> Axis:
        name, is_labelled = draft.players.names[j], facts.labels is not None
        points, breaks = self._points(facts, j, name, settings.given, draft.responder)
        anchor = None if self.centered is False else points[0]
        if j in settings.anchors:
            anchor = given_points([settings.anchors[j]], is_labelled, name)[0]
        self._check_slopes(points, is_labelled, name)
        return Axis(j, name, points, breaks, anchor, is_labelled)

    def _by_column(self, argument: str, given, players: Players) -> dict[int, object]:
        if given is None:
            return {}
        if not isinstance(given, Mapping):
            raise TypeError(f"{argument}={given!r} should be a dict from a column to its points")
        return {players.find(feature): value for feature, value in given.items()}

    def _points(self, facts: Facts, j: int, name: str, given, responder: Responder):
        if j in given:
            return given_points(given[j], facts.labels is not None, name), None
        gap = [np.nan] if self.missing and facts.labels is None and facts.has_missing else []
        if isinstance(self.grid_resolution, str) and facts.labels is None:
            breaks = responder.breaks(j)
            if breaks is None:
                raise ValueError(
                    "grid_resolution='exact' is for tree ensembles that can be read, whose curves "
                    f"are step functions; for other models say how many points {name!r} is to have"
                )
            return np.concatenate([responder.pieces(breaks), gap]), breaks
        resolution = 2 if isinstance(self.grid_resolution, str) else int(self.grid_resolution)
        points = make_points(facts, resolution, tuple(self.percentiles), self.strategy)
        if not len(points):
            raise ValueError(
                f"the background has no value of {name!r} to take points from; name its points in "
                "`custom_values`, or leave it out of `features`"
            )
        return np.concatenate([points, gap]) if gap else points, None

    def _check_slopes(self, points: np.ndarray, is_labelled: bool, name: str) -> None:
        if not self.derivative:
            return
        if is_labelled:
            raise ValueError(
                f"derivative=True: {name!r} is categorical, and curves over categories have no "
                "slope; leave it out of `features`"
            )
        numbers = points[:-1] if np.isnan(points[-1]) else points
        if len(numbers) < 2 or not np.all(np.diff(numbers) > 0):
            raise ValueError(
                f"derivative=True takes at least two ascending points, and those of {name!r} are "
                f"{points.tolist()}"
            )

    # -------------------------------------------------------------- explain

    def transform(self, X):
        """The curves of rows, side by side.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows, n_points of all features * n_outputs), float64
            In the unit of the response (a derivative: by that of the feature);
            :meth:`get_feature_names_out` names the columns. A data frame if :meth:`set_output`
            asks for one.

        Examples
        --------
        >>> import numpy as np
        >>> from fastpd_sklearn import ICEExplainer
        >>> class Product:
        ...     def predict(self, X):
        ...         return X[:, 0] * X[:, 1]
        >>> X = np.array([[0.0, 1.0], [1.0, 2.0], [2.0, 3.0]])
        >>> ICEExplainer(features=[0], centered=True).fit(Product(), X).transform(X)
        array([[0., 1., 2.],
               [0., 2., 4.],
               [0., 3., 6.]])
        """
        X = self._open_rows(X)
        return self._fill(X, None)

    def explain(self, X, *, sample_weight=None, out=None) -> list[Bunch]:
        """The curves of rows and their mean, feature by feature.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows in the mean.
        out : ndarray of shape (n_rows, n_points of all features * n_outputs), default=None
            Where to write what :meth:`transform` gives, block by block: an array of float64, or
            of float32 for half of the memory; it may be memory-mapped. The curves are then
            views of this array.

        Returns
        -------
        list of sklearn.utils.Bunch
            One a feature, with ``feature`` and ``column``, its name and number; ``grid_values``,
            a list of one ndarray of shape (n_points,); ``individual`` of shape (n_outputs,
            n_rows, n_points); ``average`` of shape (n_outputs, n_points); ``breaks``, an ndarray of
            the places where curves may jump if the grid is exact, else None;
            ``is_categorical``; and ``output_names``.

        Examples
        --------
        >>> import numpy as np
        >>> from fastpd_sklearn import ICEExplainer
        >>> class Product:
        ...     def predict(self, X):
        ...         return X[:, 0] * X[:, 1]
        >>> X = np.array([[0.0, 1.0], [1.0, 2.0], [2.0, 3.0]])
        >>> (curves,) = ICEExplainer(features=[0]).fit(Product(), X).explain(X)
        >>> curves.feature, curves.grid_values[0]
        ('x0', array([0., 1., 2.]))
        >>> curves.individual[0, 1], curves.average[0]
        (array([0., 2., 4.]), array([0., 2., 4.]))
        """
        X = self._open_rows(X)
        weights = _checks.check_weights(sample_weight, X.shape[0])
        flat = self._fill(X, out)
        results = []
        for axis, curves in zip(self._fitted.axes, self._fitted.places(flat), strict=True):
            average = np.average(curves, axis=1, weights=weights)
            results.append(self._result(axis, average, individual=curves))
        return results

    def average(self, X, *, sample_weight=None) -> list[Bunch]:
        """The mean of the curves of rows, without keeping them.

        For a response on which trees do not add up, this is partial dependence on its scale.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
            Or chunks of such rows: a Parquet file, an Arrow dataset, an iterable, a Dask
            collection.
        sample_weight : array-like of shape (n_rows,), default=None
            Of rows in chunks: the name of their column.

        Returns
        -------
        list of sklearn.utils.Bunch
            As from :meth:`explain`, without ``individual``.

        Examples
        --------
        >>> import numpy as np
        >>> from fastpd_sklearn import ICEExplainer
        >>> class Product:
        ...     def predict(self, X):
        ...         return X[:, 0] * X[:, 1]
        >>> X = np.array([[0.0, 1.0], [1.0, 2.0], [2.0, 3.0]])
        >>> explainer = ICEExplainer(features=[0]).fit(Product(), X)
        >>> explainer.average(X, sample_weight=[1.0, 0.0, 1.0])[0].average
        array([[0., 2., 4.]])
        """
        check_is_fitted(self)
        means = self._sum_over(X, sample_weight, _mean_curves)
        axes = self._fitted.axes
        return [self._result(axis, one) for axis, one in zip(axes, means.values, strict=True)]

    def _open_rows(self, X):
        check_is_fitted(self)
        return self._check_X(X)

    def _check_X(self, X):
        X = super()._check_X(X)
        if not self._fitted.tags["allow_nan"]:
            self._fitted.responder.refuse(X)
        return X

    def _result(self, axis: Axis, average: np.ndarray, **curves) -> Bunch:
        return Bunch(
            feature=axis.name,
            column=axis.column,
            grid_values=[axis.points],
            average=average,
            breaks=axis.breaks,
            is_categorical=axis.is_categorical,
            output_names=self._fitted.selection.names,
            **curves,
        )

    def _fill(self, X, out: np.ndarray | None) -> np.ndarray:
        """All curves, written to ``out``; shape (n_rows, n_columns)."""
        fitted, n_rows = self._fitted, X.shape[0]
        if out is None:
            _checks.check_memory(
                8 * n_rows * fitted.n_columns,
                f"curves of {n_rows} rows over {fitted.n_columns} points and outputs",
                "pass fewer rows of X at a time, fewer `features`, a smaller `grid_resolution`, or "
                "an `out` array to explain()",
            )
            out = np.empty((n_rows, fitted.n_columns))
        else:
            _checks.check_out(out, (n_rows, fitted.n_columns, 1))
        for n_done in fitted.fill(X, out):
            if self.verbose:
                print(f"[{self._progress()}] {n_done} of {n_rows} rows")
        return out

    def get_feature_names_out(self, input_features=None):
        """Names of the columns of :meth:`transform`.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the columns of ``X``. If the explainer was fitted with names they have to
            be these, otherwise they are used.

        Returns
        -------
        ndarray of str objects
            ``"age=35.0"``; followed by ``"__class"`` if there are several outputs.

        Examples
        --------
        >>> import numpy as np
        >>> from fastpd_sklearn import ICEExplainer
        >>> class Product:
        ...     def predict(self, X):
        ...         return X[:, 0] * X[:, 1]
        >>> X = np.array([[0.0, 1.0], [1.0, 2.0], [2.0, 3.0]])
        >>> explainer = ICEExplainer(features=[0]).fit(Product(), X)
        >>> explainer.get_feature_names_out(["width", "height"])
        array(['width=0.0', 'width=1.0', 'width=2.0'], dtype=object)
        """
        check_is_fitted(self)
        fitted, names = self._fitted, self._given_names(input_features)
        axes = fitted.axes
        if names is not None:
            axes = [replace(axis, name=names[axis.column]) for axis in axes]
        labels = [(label,) for axis in axes for label in axis.labels()]
        return output_columns(labels, fitted.selection)


def _mean_curves(explainer: ICEExplainer, X, weights: np.ndarray) -> Means:
    return Means(weights.sum(), list(explainer._fitted.averages(X, weights)))

"""The one representation of a tree ensemble that everything else works on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields

import numpy as np

from fastpd_sklearn.core import nodes
from fastpd_sklearn.core.gathering import gather_nodes
from fastpd_sklearn.core.model import CoreModel
from fastpd_sklearn.forest._boxes import box_arrays

ZERO_THRESHOLD = float(np.float32(1e-35))
"""LightGBM's half-width of "zero": values within it may be taken as missing."""


@dataclass(frozen=True, eq=False, repr=False)
class Forest:
    """A sum of decision trees as flat arrays, with one meaning for all libraries.

    A row of inputs ``x`` (float64, NaN for missing) goes to the *left* child of
    inner node ``i`` if, with ``v = x[feature[i]]``,

    * ``v`` is NaN, or ``zero_as_missing[i]`` and ``|v| <= ZERO_THRESHOLD``:
      iff ``missing_left[i]``;
    * the node is categorical: iff ``(trunc(v) in categories of i) == listed_left[i]``
      (negative, huge and unlisted values are in no list);
    * otherwise: iff ``v < threshold[i]`` (``strict``) or ``v <= threshold[i]``, after
      ``v`` is rounded to float32 if ``single``.

    The raw prediction is ``intercept`` plus, for every tree ``t``, the ``value`` of the
    leaf that the row reaches, added to the outputs ``tree_output[t]`` up to
    ``tree_output[t] + n_values``. A *linear* leaf adds ``slope[e] * x[slope_input[e]]`` for
    each of its entries ``e``; no row reaches it in which one of these inputs is missing.

    Parameters
    ----------
    tree_start : ndarray of shape (n_trees + 1,), int64
        The nodes of tree ``t`` are ``tree_start[t]`` up to ``tree_start[t + 1]``; the root
        comes first and every child after its parent.
    left, right : ndarray of shape (n_nodes,), int32
        Children, numbered within the whole forest; -1 at leaves.
    feature : ndarray of shape (n_nodes,), int32
        The input column that is tested; -1 at leaves.
    threshold : ndarray of shape (n_nodes,), float64
        NaN at leaves and at categorical nodes.
    missing_left, zero_as_missing, is_categorical, listed_left : ndarray of shape (n_nodes,), bool
        See above.
    category_start : ndarray of shape (n_nodes + 1,), int64
        Node ``i`` lists ``category[category_start[i]:category_start[i + 1]]``.
    category : ndarray of int32
        Non-negative category codes, ascending within a node.
    value : ndarray of shape (n_nodes, n_values), float64
        Leaf values with the tree's weight applied; zero at inner nodes.
    cover : ndarray of shape (n_nodes,), float64
        What the library says of the training weight in each node (XGBoost: the sum of
        hessians; scikit-learn: of sample weights; LightGBM: row counts).
    tree_output : ndarray of shape (n_trees,), int32
        The first output that the tree adds to.
    intercept : ndarray of shape (n_outputs,), float64
    n_inputs : int
        Number of input columns.
    strict, single : bool
        The compare policy.
    slope_node : ndarray of shape (n_slopes,), int64, default: none
        The leaf of each slope, ascending.
    slope_input : ndarray of shape (n_slopes,), int64
        The input that the slope multiplies, once a leaf.
    slope : ndarray of shape (n_slopes, n_values), float64

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from fastpd_sklearn.forest import find_reader
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> model = DecisionTreeRegressor(random_state=0).fit(X, [0.0, 0.0, 0.0, 8.0])
    >>> forest = find_reader(model).read(model).forest
    >>> forest
    Forest(n_trees=1, n_nodes=5, n_inputs=2, n_outputs=1)
    >>> forest.feature, forest.threshold
    (array([ 1, -1,  0, -1, -1], dtype=int32), array([0.5, nan, 0.5, nan, nan]))
    >>> forest.value.ravel()
    array([0., 0., 0., 0., 8.])
    """

    tree_start: np.ndarray
    left: np.ndarray
    right: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    missing_left: np.ndarray
    zero_as_missing: np.ndarray
    is_categorical: np.ndarray
    listed_left: np.ndarray
    category_start: np.ndarray
    category: np.ndarray
    value: np.ndarray
    cover: np.ndarray
    tree_output: np.ndarray
    intercept: np.ndarray
    n_inputs: int
    strict: bool
    single: bool
    slope_node: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    slope_input: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    slope: np.ndarray = field(default_factory=lambda: np.empty((0, 1)))

    @property
    def is_linear(self) -> bool:
        """Whether some leaves are linear functions of the inputs."""
        return len(self.slope_node) > 0

    @classmethod
    def from_boxes(
        cls, lower, upper, value, *, features=None, n_features=None, intercept=0.0
    ) -> Forest:
        """A sum of boxes, each of which adds its value to the rows that it holds.

        A box bounds some features by intervals; what it does not bound may be anything. Boxes may
        overlap and leave gaps: planted forests, rule ensembles and histograms of any kind are such
        sums. The explainers take the forest as a model, ``fit(forest, background)``.

        Parameters
        ----------
        lower, upper : array-like of shape (n_boxes, n_columns)
            A box holds ``lower <= x < upper``, in float64. Minus infinity and infinity are no
            bounds. A missing value is in no interval, so that a box that bounds its feature
            does not hold the row.
        value : array-like of shape (n_boxes,) or (n_boxes, n_outputs)
            What the boxes add.
        features : array-like of int, of a shape that broadcasts to that of ``lower``, default=None
            The feature that each entry of ``lower`` and ``upper`` bounds, for boxes over a few
            features of many; by default entry ``j`` bounds feature ``j``.
        n_features : int, default=None
            Number of features of the rows; by default just enough for those that are bounded.
        intercept : float or array-like of shape (n_outputs,), default=0.0
            What is added to all rows.

        Returns
        -------
        Forest
            A box is a tree with a test for every bound. It has no covers: path-dependent values
            need a background to count them on.

        Raises
        ------
        ValueError
            If the shapes do not go together, a box is empty, or a value is not finite.

        References
        ----------
        M. Hiabu, E. Mammen, J. T. Meyer, "Random planted forest: a directly interpretable tree
        ensemble", arXiv:2012.14563, whose leaves are such boxes.

        Examples
        --------
        Two boxes that overlap, the second over one feature of the two.

        >>> import numpy as np
        >>> from fastpd_sklearn import FastPDExplainer
        >>> from fastpd_sklearn.forest import Forest
        >>> forest = Forest.from_boxes(
        ...     lower=[[0.0, 0.0], [0.5, -np.inf]],
        ...     upper=[[1.0, 1.0], [np.inf, np.inf]],
        ...     value=[8.0, 2.0],
        ... )
        >>> X = np.array([[0.7, 0.2], [0.7, 3.0], [0.2, 0.2], [2.0, 3.0]])
        >>> forest.predict(X)
        array([10.,  2.,  8.,  2.])
        >>> FastPDExplainer(output="component").fit(forest, X).transform(X)
        array([[ 0.5,  2. ,  2. ],
               [ 0.5, -4. ,  0. ],
               [-1.5,  2. ,  2. ],
               [-3.5, -4. ,  4. ]])
        """
        arrays = box_arrays(
            lower, upper, value, features=features, n_features=n_features, intercept=intercept
        )
        forest = cls(**arrays)
        check_forest(forest)
        return forest

    def predict(self, X) -> np.ndarray:
        """The raw prediction, by the same core that explains the forest.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_inputs)
            Inputs, NaN for missing.

        Returns
        -------
        ndarray of shape (n_rows,), or (n_rows, n_outputs) if there are several outputs

        Examples
        --------
        >>> from fastpd_sklearn.forest import Forest
        >>> forest = Forest.from_boxes(lower=[[0.0, 0.0]], upper=[[1.0, 1.0]], value=[8.0])
        >>> forest.predict([[0.5, 0.5], [0.5, 2.0]])
        array([8., 0.])
        """
        inputs = np.asarray(X, dtype=np.float64)
        if inputs.ndim != 2 or inputs.shape[1] != self.n_inputs:
            raise ValueError(
                f"X has shape {inputs.shape}; expected (n_rows, {self.n_inputs}), a column for "
                "each input of the forest"
            )
        owner = np.arange(self.n_inputs, dtype=np.int32)
        core = CoreModel(self, owner, self.n_inputs, ZERO_THRESHOLD)
        raw = core.predict(core.bins.bin_matrix(inputs, 1)[0], 1)
        return raw[:, 0] if self.n_outputs == 1 else raw

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.tree_start) - 1

    @property
    def n_nodes(self) -> int:
        """Number of nodes, leaves included."""
        return len(self.left)

    @property
    def n_outputs(self) -> int:
        """Number of raw outputs."""
        return len(self.intercept)

    def scale(self) -> np.ndarray:
        """Size of the numbers at hand: ``|intercept| + sum over trees of max |leaf|``.

        Returns
        -------
        ndarray of shape (n_outputs,)
            Errors are measured relative to it.

        Examples
        --------
        >>> from fastpd_sklearn.forest import Forest
        >>> forest = Forest.from_boxes([[0.0], [0.5]], [[1.0], [2.0]], [8.0, -2.0], intercept=1.0)
        >>> forest.scale()
        array([11.])
        """
        total = np.abs(self.intercept)
        if self.n_trees:
            most = np.maximum.reduceat(self.value, self.tree_start[:-1], axis=0)
            least = np.minimum.reduceat(self.value, self.tree_start[:-1], axis=0)
            largest = np.maximum(most, -least)
            for shift in range(self.value.shape[1]):
                np.add.at(total, self.tree_output + shift, largest[:, shift])
        return total

    def slope_scale(self, inputs: np.ndarray) -> np.ndarray:
        """What linear leaves add to :meth:`scale`, row by row.

        Parameters
        ----------
        inputs : ndarray of shape (n_rows, n_inputs), float64

        Returns
        -------
        ndarray of shape (n_rows, n_outputs)

        Examples
        --------
        >>> from dataclasses import replace
        >>> import numpy as np
        >>> from fastpd_sklearn.forest import Forest
        >>> boxes = Forest.from_boxes(lower=[[0.0, 0.0]], upper=[[1.0, 1.0]], value=[8.0])
        >>> forest = replace(
        ...     boxes,
        ...     slope_node=np.flatnonzero(boxes.left < 0)[:1],
        ...     slope_input=np.array([1]),
        ...     slope=np.array([[-2.0]]),
        ... )
        >>> forest.slope_scale(np.array([[0.5, 3.0]]))
        array([[6.]])
        """
        tree = np.searchsorted(self.tree_start, self.slope_node, side="right") - 1
        largest = np.zeros((self.n_trees, self.n_inputs))
        total = np.zeros((self.n_inputs, self.n_outputs))
        for shift in range(self.slope.shape[1]):
            largest[:] = 0.0
            np.maximum.at(largest, (tree, self.slope_input), np.abs(self.slope[:, shift]))
            np.add.at(total.T, self.tree_output + shift, largest)
        return np.abs(np.nan_to_num(inputs)) @ total

    def leaf_depths(self) -> np.ndarray:
        """Number of tests on the way to each leaf.

        Returns
        -------
        ndarray of shape (n_leaves,), int32

        Examples
        --------
        >>> from fastpd_sklearn.forest import ForestBuilder
        >>> builder = ForestBuilder(n_inputs=1, n_outputs=1, strict=False, single=False)
        >>> builder.add(
        ...     left=[1, -1, -1],
        ...     right=[2, -1, -1],
        ...     feature=[0, -1, -1],
        ...     threshold=[2.5, 0.0, 0.0],
        ...     value=[0.0, 1.0, 7.0],
        ...     cover=[10, 6, 4],
        ... )
        >>> builder.build(0.0).leaf_depths()
        array([1, 1], dtype=int32)
        """
        return nodes.node_depths(self.tree_start, self.left, self.right)[self.left < 0]

    def digest(self) -> str:
        """Hash of all that the forest computes by, to tell whether two are the same.

        Returns
        -------
        str

        Examples
        --------
        >>> from fastpd_sklearn.forest import Forest
        >>> forest = Forest.from_boxes(lower=[[0.0, 0.0]], upper=[[1.0, 1.0]], value=[8.0])
        >>> twin = Forest.from_boxes(lower=[[0.0, 0.0]], upper=[[1.0, 1.0]], value=[8.0])
        >>> forest.digest() == twin.digest()
        True
        """
        found = hashlib.sha256()
        for field_ in fields(self):
            value = getattr(self, field_.name)
            found.update(field_.name.encode())
            found.update(
                np.ascontiguousarray(value).tobytes()
                if isinstance(value, np.ndarray)
                else repr(value).encode()
            )
        return found.hexdigest()

    def __repr__(self) -> str:
        return (
            f"Forest(n_trees={self.n_trees}, n_nodes={self.n_nodes}, "
            f"n_inputs={self.n_inputs}, n_outputs={self.n_outputs})"
        )


@dataclass
class ForestBuilder:
    """Collects trees, one :meth:`add` each, and joins them into a :class:`Forest`.

    Parameters
    ----------
    n_inputs : int
        Number of input columns.
    n_outputs : int
        Number of raw outputs.
    strict, single : bool
        The compare policy of :class:`Forest`.

    Examples
    --------
    >>> from fastpd_sklearn.forest import ForestBuilder
    >>> builder = ForestBuilder(n_inputs=1, n_outputs=1, strict=False, single=False)
    >>> builder.add(
    ...     left=[1, -1, -1],
    ...     right=[2, -1, -1],
    ...     feature=[0, -1, -1],
    ...     threshold=[2.5, 0.0, 0.0],
    ...     value=[0.0, 1.0, 7.0],
    ...     cover=[10, 6, 4],
    ... )
    >>> forest = builder.build(intercept=0.5)
    >>> forest.predict([[2.5], [3.0]])
    array([1.5, 7.5])
    """

    n_inputs: int
    n_outputs: int
    strict: bool
    single: bool
    _blocks: list[dict[str, np.ndarray]] = field(default_factory=list)
    _sizes: list[int] = field(default_factory=list)
    _outputs: list[int] = field(default_factory=list)
    _listings: list[_Listing] = field(default_factory=list)

    def add(
        self,
        *,
        left,
        right,
        feature,
        threshold,
        value,
        cover,
        output: int = 0,
        missing_left=False,
        zero_as_missing=False,
        is_categorical=False,
        listed_left=True,
        categories=None,
    ) -> None:
        """Append one tree.

        Parameters
        ----------
        left, right, feature : array-like of shape (n_nodes,), int
            Children numbered within the tree (negative at leaves), root first, children
            after their parents; the tested input (ignored at leaves).
        threshold : array-like of shape (n_nodes,), float
        value : array-like of shape (n_nodes,) or (n_nodes, n_values), float
            Leaf values, the tree's weight applied (ignored at inner nodes).
        cover : array-like of shape (n_nodes,), float
        output : int, default=0
            The first output that the tree adds to.
        missing_left, zero_as_missing, is_categorical, listed_left : array-like of bool or bool
        categories : sequence of array-like of int, or dict of node -> array-like, default=None
            The categories that each categorical node lists.

        Examples
        --------
        >>> import numpy as np
        >>> from fastpd_sklearn.forest import ForestBuilder
        >>> builder = ForestBuilder(n_inputs=1, n_outputs=1, strict=False, single=False)
        >>> builder.add(
        ...     left=[1, -1, -1],
        ...     right=[2, -1, -1],
        ...     feature=[0, -1, -1],
        ...     threshold=[np.nan, 0.0, 0.0],
        ...     value=[0.0, 1.0, 7.0],
        ...     cover=[10, 6, 4],
        ...     is_categorical=[True, False, False],
        ...     categories={0: [0, 3]},
        ... )
        >>> builder.build(intercept=0.0).predict([[0.0], [1.0], [3.0]])
        array([1., 7., 1.])
        """
        tree = {"left": left, "right": right, "feature": feature, "threshold": threshold}
        tree |= {"value": value, "cover": cover, "output": output, "missing_left": missing_left}
        tree |= {"zero_as_missing": zero_as_missing, "is_categorical": is_categorical}
        self.add_trees([{**tree, "listed_left": listed_left, "categories": categories}])

    def add_trees(self, trees: Iterable[Mapping]) -> None:
        """Append some trees, which takes less time than one by one where they are large.

        Parameters
        ----------
        trees : iterable of dict
            The arguments of :meth:`add` for each tree.

        Raises
        ------
        ValueError
            If the arrays of a tree differ in their lengths, or trees in their values a node.

        Examples
        --------
        >>> from fastpd_sklearn.forest import ForestBuilder
        >>> builder = ForestBuilder(n_inputs=1, n_outputs=1, strict=False, single=False)
        >>> stump = {"left": [1, -1, -1], "right": [2, -1, -1], "feature": [0, -1, -1]}
        >>> stump |= {"threshold": [2.5, 0.0, 0.0], "cover": [10, 6, 4]}
        >>> builder.add_trees([{**stump, "value": [0.0, 1.0, scale]} for scale in (3.0, 7.0)])
        >>> builder.build(intercept=0.5).predict([[2.5], [3.0]])
        array([ 2.5, 10.5])
        """
        columns = []
        for tree in trees:
            found, output, listing = _columns_of(**tree)
            columns.append(found)
            self._sizes.append(len(found["left"]))
            self._outputs.append(output)
            self._listings.append(listing)
        widths = {block["value"].shape[1] for block in [*self._blocks[:1], *columns]}
        if len(widths) > 1:
            raise ValueError(f"trees have different numbers of values a node: {sorted(widths)}")
        if columns:
            root = sum(len(block["left"]) for block in self._blocks)
            self._blocks.append(gather_nodes(columns, root, widths.pop()))

    def build(self, intercept) -> Forest:
        """Join the trees.

        Parameters
        ----------
        intercept : array-like of shape (n_outputs,) or float

        Returns
        -------
        Forest

        Raises
        ------
        ValueError
            If the arrays do not describe trees (a child before its parent, a node with two
            parents, an input out of range, a leaf value that is not finite).

        Examples
        --------
        >>> from fastpd_sklearn.forest import ForestBuilder
        >>> builder = ForestBuilder(n_inputs=1, n_outputs=1, strict=False, single=False)
        >>> builder.add(
        ...     left=[1, -1, -1],
        ...     right=[2, -1, -1],
        ...     feature=[0, -1, -1],
        ...     threshold=[2.5, 0.0, 0.0],
        ...     value=[0.0, 1.0, 7.0],
        ...     cover=[10, 6, 4],
        ... )
        >>> builder.build(intercept=0.5)
        Forest(n_trees=1, n_nodes=3, n_inputs=1, n_outputs=1)
        """
        start = np.cumsum([0, *self._sizes], dtype=np.int64)
        blocks = self._blocks or [gather_nodes([], 0, 1)]

        def join(name: str) -> np.ndarray:
            parts = [block[name] for block in blocks]
            return parts[0] if len(parts) == 1 else np.concatenate(parts)

        forest = Forest(
            tree_start=start,
            **{name: join(name) for name in blocks[0]},
            category_start=_category_start(self._listings, start),
            category=np.concatenate([np.empty(0, np.int32), *(c for _, c in self._listings)]),
            tree_output=np.array(self._outputs, dtype=np.int32),
            intercept=np.broadcast_to(
                np.asarray(intercept, dtype=np.float64), self.n_outputs
            ).copy(),
            n_inputs=self.n_inputs,
            strict=self.strict,
            single=self.single,
        )
        check_forest(forest)
        return forest


def _columns_of(
    left,
    right,
    feature,
    threshold,
    value,
    cover,
    output=0,
    missing_left=False,
    zero_as_missing=False,
    is_categorical=False,
    listed_left=True,
    categories=None,
) -> tuple[dict[str, np.ndarray | None], int, _Listing]:
    """A tree as `gather_nodes` takes it, without a copy where types are as they should be."""
    left = np.asarray(left)
    n_nodes = len(left)

    def column(name: str, array, dtypes: tuple) -> np.ndarray:
        array = np.asarray(array)
        array = array if array.dtype in dtypes else array.astype(dtypes[0])
        if array.ndim and array.shape != (n_nodes,):
            raise ValueError(
                f"{name} of a tree has shape {array.shape}; expected ({n_nodes},), an entry for "
                "each of its nodes"
            )
        return np.broadcast_to(array, n_nodes) if array.ndim == 0 else array

    def flags(name: str, array) -> np.ndarray | None:
        return None if array is False else column(name, array, _FLAG)

    columns = {
        "left": column("left", left, _WHOLE),
        "right": column("right", right, _WHOLE),
        "feature": column("feature", feature, _WHOLE),
        "threshold": column("threshold", threshold, _DOUBLE),
        "cover": column("cover", cover, _DOUBLE),
        "value": np.asarray(value, dtype=np.float64).reshape(n_nodes, -1),
        "missing_left": flags("missing_left", missing_left),
        "zero_as_missing": flags("zero_as_missing", zero_as_missing),
        "is_categorical": flags("is_categorical", is_categorical),
        "listed_left": flags("listed_left", listed_left),
    }
    is_categorical = columns["is_categorical"]
    listing = np.flatnonzero([] if is_categorical is None else (is_categorical != 0) & (left >= 0))
    return columns, output, _category_lists(categories, listing, n_nodes)


_DOUBLE = (np.dtype(np.float64),)
_WHOLE = (np.dtype(np.int64), np.dtype(np.int32))
_FLAG = (np.dtype(bool), np.dtype(np.uint8))

_Listing = tuple[np.ndarray | None, np.ndarray]
"""How many categories each node of a tree lists, None for none at all, and all of them."""


def _category_lists(categories, nodes: np.ndarray, n_nodes: int) -> _Listing:
    if not len(nodes):
        return None, np.empty(0, np.int32)
    lists = [np.unique(np.asarray(categories[node], dtype=np.int32)) for node in nodes]
    count = np.zeros(n_nodes, np.int64)
    count[nodes] = [len(listed) for listed in lists]
    return count, np.concatenate(lists)


def _category_start(listings: list[_Listing], start: np.ndarray) -> np.ndarray:
    """Where the list of each node of all trees starts, and where the last one ends."""
    out = np.zeros(start[-1] + 1, np.int64)
    for (count, _), first, last in zip(listings, start[:-1], start[1:], strict=True):
        if count is not None:
            out[first + 1 : last + 1] = count
    return np.cumsum(out, out=out) if any(len(listed) for _, listed in listings) else out


FOREST_ARRAYS = {
    "tree_start": ("int64", ("trees + 1",)),
    "left": ("int32", ("nodes",)),
    "right": ("int32", ("nodes",)),
    "feature": ("int32", ("nodes",)),
    "threshold": ("float64", ("nodes",)),
    "missing_left": ("bool", ("nodes",)),
    "zero_as_missing": ("bool", ("nodes",)),
    "is_categorical": ("bool", ("nodes",)),
    "listed_left": ("bool", ("nodes",)),
    "category_start": ("int64", ("nodes + 1",)),
    "category": ("int32", ("categories",)),
    "value": ("float64", ("nodes", "values")),
    "cover": ("float64", ("nodes",)),
    "tree_output": ("int32", ("trees",)),
    "intercept": ("float64", ("outputs",)),
    "slope_node": ("int64", ("slopes",)),
    "slope_input": ("int64", ("slopes",)),
    "slope": ("float64", ("slopes", "slope values")),
}
"""Types and shapes of the arrays of a :class:`Forest`."""


def check_arrays(forest: Forest) -> None:
    """Check what is taken for granted of a forest that a reader has built.

    Parameters
    ----------
    forest : Forest
        From somewhere else, such as a file.

    Raises
    ------
    ValueError
        If its arrays have other types or shapes, or point beyond each other; or as
        :func:`check_forest`.
    """
    sizes = {"values": forest.value.shape[-1] if forest.value.ndim else 0}
    sizes |= {"nodes": len(forest.left), "trees": len(forest.tree_output)}
    sizes |= {"categories": len(forest.category), "outputs": len(forest.intercept)}
    sizes |= {"slopes": len(forest.slope_node)}
    # A forest without slopes does not say how many values each would have.
    sizes |= {"slope values": sizes["values"] if sizes["slopes"] else forest.slope.shape[-1]}
    sizes |= {f"{name} + 1": size + 1 for name, size in list(sizes.items())}
    for name, (dtype, shape) in FOREST_ARRAYS.items():
        array = getattr(forest, name)
        if array.dtype != dtype or array.shape != tuple(sizes[of] for of in shape):
            raise ValueError(f"the forest's {name} is {array.dtype} of shape {array.shape}")
    if not sizes["values"] or not sizes["outputs"]:
        raise ValueError("the forest has no output")
    for name, last in (("tree_start", "nodes"), ("category_start", "categories")):
        start = getattr(forest, name)
        if start[0] != 0 or start[-1] != sizes[last] or np.any(np.diff(start) < 0):
            raise ValueError(f"the forest's {name} does not part its {last}")
    is_leaf = forest.left == -1
    if np.any(is_leaf != (forest.right == -1)) or np.any(is_leaf != (forest.feature == -1)):
        raise ValueError("a node of the forest is half a leaf")
    listed = np.repeat(np.arange(forest.n_nodes), np.diff(forest.category_start))
    if np.any(forest.category < 0) or np.any(
        (np.diff(listed) == 0) & (np.diff(forest.category) <= 0)
    ):
        raise ValueError("the categories of a node do not ascend from zero")
    if np.any(is_leaf & (forest.is_categorical | forest.zero_as_missing)):
        raise ValueError("a leaf of the forest has a test")
    if np.any(forest.cover < 0) or np.any(np.isinf(forest.cover)):
        raise ValueError("a node of the forest has a cover that is none")
    check_forest(forest)


def check_forest(forest: Forest) -> None:
    """Check that the arrays of a forest describe trees.

    Parameters
    ----------
    forest : Forest

    Raises
    ------
    ValueError
        If they do not; see :meth:`ForestBuilder.build`.
    """
    faults = nodes.node_faults(
        forest.tree_start,
        forest.left,
        forest.right,
        forest.feature,
        forest.threshold,
        forest.is_categorical,
        forest.value,
        forest.n_inputs,
    )
    if faults & nodes.NO_NODE:
        raise ValueError("a tree has no node")
    if faults & nodes.NO_TREE:
        raise ValueError("the children of a tree's nodes do not form a tree, root first")
    if faults & nodes.OTHER_TREE:
        raise ValueError("a node's child belongs to another tree")
    if faults & nodes.NO_INPUT:
        raise ValueError(f"a tree tests an input that is not among the {forest.n_inputs}")
    if faults & nodes.NO_THRESHOLD:
        raise ValueError("a threshold is NaN")
    if forest.single and forest.zero_as_missing.any():
        raise ValueError(
            "near-zero values that are taken as missing (zero_as_missing) do not go with inputs "
            "that are rounded to float32 first (single)"
        )
    if faults & nodes.NOT_FINITE or not np.all(np.isfinite(forest.intercept)):
        raise ValueError("a leaf value or the intercept is not finite")
    if forest.n_trees and np.any(
        (forest.tree_output < 0) | (forest.tree_output > forest.n_outputs - forest.value.shape[1])
    ):
        raise ValueError(f"a tree adds to an output that is not among the {forest.n_outputs}")
    _check_slopes(forest)
    if not forest.is_categorical.any():
        return
    numeric = np.unique(forest.feature[(forest.left >= 0) & ~forest.is_categorical])
    both = np.intersect1d(numeric, forest.feature[forest.is_categorical])
    if len(both):
        raise ValueError(
            f"input {both[0]} is split on by threshold in one node and by category in another"
        )


def _check_slopes(forest: Forest) -> None:
    if not forest.is_linear:
        return
    node, column = forest.slope_node, forest.slope_input
    if np.any((node < 0) | (node >= forest.n_nodes)) or np.any(np.diff(node) < 0):
        raise ValueError("the leaves of slopes are not nodes in ascending order")
    if np.any(forest.left[node] >= 0):
        raise ValueError("a node that is no leaf has a slope")
    if np.any((column < 0) | (column >= forest.n_inputs)):
        raise ValueError(f"a slope belongs to an input that is not among the {forest.n_inputs}")
    if np.any((np.diff(node) == 0) & (np.diff(column) == 0)):
        raise ValueError("a leaf has two slopes for one input")
    if not np.all(np.isfinite(forest.slope)):
        raise ValueError("a slope is not finite")
    if not np.all(excludes_missing(forest, node, column)):
        raise ValueError("a linear leaf can be reached with one of its inputs missing")


def excludes_missing(forest: Forest, node: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Whether rows in which an input is missing never reach a node.

    Parameters
    ----------
    forest : Forest
    node, column : ndarray of shape (n,), int
        Nodes, and an input for each.

    Returns
    -------
    ndarray of shape (n,), bool
    """
    inner = np.flatnonzero(forest.left >= 0)
    parent = np.full(forest.n_nodes, -1)
    parent[forest.left[inner]] = parent[forest.right[inner]] = inner
    found = np.zeros(len(node), bool)
    child, above = node, parent[node]
    while np.any(above >= 0):
        is_left = forest.left[above] == child
        tested = (above >= 0) & (forest.feature[above] == column)
        found |= tested & (is_left != forest.missing_left[above])
        child, above = np.where(above >= 0, above, child), np.where(above >= 0, parent[above], -1)
    return found

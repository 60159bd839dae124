"""Explainers in files that hold no code: what is written, and how it is read again.

A file has the explainer's parameters and what ``fit`` has learnt: the forest, how columns are
read, names, and the state of the background. All else is made anew when it is read, by the same
code as at ``fit``, once everything has been checked that this code takes for granted.
"""

from __future__ import annotations

import os
from copy import copy
from dataclasses import fields

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fastpd_sklearn.explainers import _outputs
from fastpd_sklearn.explainers._archive import DAMAGED, Archive, decode, encode
from fastpd_sklearn.explainers._background import DeepEngine, ResponseEngine
from fastpd_sklearn.explainers._deep_shap import PairEngine
from fastpd_sklearn.explainers._empirical import EmpiricalEngine
from fastpd_sklearn.explainers._engine import STATE_VERSION, TreeEngine
from fastpd_sklearn.explainers._fastpd import FastPDExplainer
from fastpd_sklearn.explainers._fitted import Fitted
from fastpd_sklearn.explainers._grid import Template
from fastpd_sklearn.explainers._jackknife import Jackknife
from fastpd_sklearn.explainers._linear import LinearEngine
from fastpd_sklearn.explainers._pathdependent import PathDependentExplainer, PathEngine
from fastpd_sklearn.explainers._players import Players
from fastpd_sklearn.explainers._response import Selection
from fastpd_sklearn.explainers._saved_rows import decode_row, encode_row
from fastpd_sklearn.explainers._trees import TreeExplainer
from fastpd_sklearn.forest import InputMap, Reading
from fastpd_sklearn.forest._catboost_hash import category_hash
from fastpd_sklearn.forest._forest import FOREST_ARRAYS, Forest, check_arrays
from fastpd_sklearn.forest._plain_heads import head_of, plain_head

FORMAT = "fastpd_sklearn explainer"
VERSION = 1
"""Of the format. A file of a later one is refused."""

_ENGINES = {
    FastPDExplainer: (EmpiricalEngine, DeepEngine, PairEngine, LinearEngine, ResponseEngine),
    PathDependentExplainer: (PathEngine,),
}
_LABEL_KEYS = {"catboost": category_hash}
_FLAGS = ("n_inputs", "strict", "single")
_MODELS = ("estimator", "surrogate")
"""Parameters that are models, which a file does not have."""

_ATTRIBUTES = (
    "n_features_in_",
    "feature_names_in_",
    "classes_",
    "response_method_",
    "surrogate_score_",
)


def save_explainer(explainer: TreeExplainer, file) -> None:
    """See :meth:`TreeExplainer.save`."""
    check_is_fitted(explainer)
    if type(explainer) not in _ENGINES:
        raise TypeError(
            f"save knows {', '.join(cls.__name__ for cls in _ENGINES)} and not the class "
            f"{type(explainer).__name__}; pickle it"
        )
    engine = explainer._fitted.engine
    if engine.preprocesses:
        raise ValueError(
            "save writes no code, and the steps of a pipeline are code; explain its last step on "
            "what comes out of the others, fit(pipe[-1], pipe[:-1].transform(X)), or pickle the "
            "explainer"
        )
    try:
        content = encode(_content(explainer))
    except TypeError as error:
        raise ValueError(
            f"save writes numbers and text only: {error}; pickle the explainer instead"
        ) from error
    arrays = {f"forest/{name}": getattr(engine.forest, name) for name in FOREST_ARRAYS}
    arrays |= {f"state/{name}": array for name, array in engine.packed().items()}
    groups = explainer._fitted.jackknife
    for g, part in enumerate([] if groups is None else groups.parts):
        packed = {} if part is None else part.packed()
        arrays |= {f"groups/{g}/{name}": array for name, array in packed.items()}
    header = {"format": FORMAT, "version": VERSION, "state": STATE_VERSION, "content": content}
    Archive(header, arrays).write(file)


def _content(explainer: TreeExplainer) -> dict:
    fitted = explainer._fitted
    engine, players, template = fitted.engine, fitted.players, fitted.template
    params = explainer.get_params(deep=False)
    params = {name: value for name, value in params.items() if name not in _MODELS}
    if not isinstance(params["random_state"], int | None):
        params["random_state"] = None  # it was of use in fit alone
    return {
        "class": type(explainer).__name__,
        "params": params,
        "attributes": {n: getattr(explainer, n, None) for n in _ATTRIBUTES},
        "forest": {name: getattr(engine.forest, name) for name in _FLAGS},
        "digest": engine.forest_digest,
        "inputs": _fields_of(engine.input_map),
        "engine": type(engine).__name__,
        "head": plain_head(engine.head) if isinstance(engine, ResponseEngine) else None,
        "players": {**_fields_of(players), "columns": [c.tolist() for c in players.columns]},
        "output": fitted.output,
        "terms": fitted.terms,
        "selection": _fields_of(fitted.selection),
        "template": {**_fields_of(template), "row": encode_row(template.row)},
        "tags": fitted.tags,
        "groups": _groups_of(fitted.jackknife),
    }


def _fields_of(value) -> dict:
    """The fields of a dataclass; types, and functions that are known, by their names."""
    found = {field.name: getattr(value, field.name) for field in fields(value)}
    names = {function: name for name, function in _LABEL_KEYS.items()}
    return {
        k: np.dtype(v).name if isinstance(v, type) else names.get(v, v) if callable(v) else v
        for k, v in found.items()
    }


def _groups_of(groups: Jackknife | None) -> dict | None:
    if groups is None:
        return None
    filled = [part is not None for part in groups.parts]
    return {"filled": filled, "weight": groups.weight, "squares": float(groups.squares)}


def load_explainer(file):
    """Read an explainer that was saved by its method ``save``.

    It runs no code from the file, and needs neither the model nor the library that it was trained
    with. The explainer is like one that was detached: it has no ``estimator_``, and explains,
    takes more rows by ``partial_fit`` and merges as before.

    Parameters
    ----------
    file : str, path, or file object opened for reading bytes

    Returns
    -------
    FastPDExplainer or PathDependentExplainer

    Raises
    ------
    ValueError
        If the file was written by another program or a later version, or is damaged.
    OSError
        If it cannot be opened.
    ImportError
        If the background was a data frame of a library that is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> from fastpd_sklearn import FastPDExplainer, load_explainer
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = HistGradientBoostingRegressor(max_iter=5).fit(X, y)
    >>> explainer = FastPDExplainer(output="shap").fit(model, X)
    >>> path = Path(tempfile.mkdtemp()) / "diabetes.explainer"
    >>> explainer.save(path)
    >>> bool((load_explainer(path).transform(X) == explainer.transform(X)).all())
    True
    """
    try:
        archive = Archive.read(file)
        _check_version(archive.header)
        return _restored(archive)
    except DAMAGED as error:
        is_path = isinstance(file, str | os.PathLike)
        name = file if is_path else getattr(file, "name", "the file")
        raise ValueError(f"{name} is no explainer that was saved: {error}") from error


def _check_version(header: dict) -> None:
    if header.get("format") != FORMAT:
        raise ValueError("it does not say that it is one")
    found, known = (header.get("version"), header.get("state")), (VERSION, STATE_VERSION)
    if found != known or any(type(number) is not int for number in found):
        raise ValueError(
            f"it was written in version {found[0]} of the format (state {found[1]}), and this is "
            f"version {known[0]} ({known[1]}); read it by the fastpd_sklearn that wrote it"
        )
    if set(header) != {"format", "version", "state", "content"}:
        raise ValueError(f"its header has other entries: {sorted(header)}")


def _restored(archive: Archive):
    content = decode(archive.header["content"])
    classes = {cls.__name__: cls for cls in _ENGINES}
    cls = _known("class", content.pop("class"), classes)
    explainer = cls()
    params = content.pop("params")
    _same_keys("params", params, set(explainer.get_params()).difference(_MODELS))
    explainer.set_params(**params)
    explainer._check_params()
    attributes = content.pop("attributes")
    _same_keys("attributes", attributes, _ATTRIBUTES)
    _check_names(attributes["feature_names_in_"], attributes["n_features_in_"])
    for name, value in attributes.items():
        if value is not None:
            setattr(explainer, name, value)
    engines = {engine.__name__: engine for engine in _ENGINES[cls]}
    engine_class = _known("engine", content.pop("engine"), engines)
    fitted = _fitted(archive, content, engine_class, explainer)
    archive.check_empty()
    explainer._replace(fitted)
    explainer.terms_ = tuple(map(fitted.players.name, fitted.terms))
    explainer.get_feature_names_out()  # which refuses names that are not each their own
    return explainer


def _check_names(names, n_columns) -> None:
    if names is None:
        return
    is_array = isinstance(names, np.ndarray) and names.shape == (n_columns,)
    if not is_array or not all(isinstance(name, str) for name in names.tolist()):
        raise ValueError(f"its feature_names_in_ is not {n_columns} names")


def _fitted(archive: Archive, content: dict, engine_class, explainer) -> Fitted:
    names = ("forest", "digest", "inputs", "head", "players", "output", "terms", "selection")
    _same_keys("header", content, {*names, "template", "tags", "groups"})
    n_columns = explainer.n_features_in_
    forest = _forest(archive, content["forest"])
    if forest.digest() != content["digest"]:
        raise ValueError("its forest is not the one that it was saved with")
    input_map = _input_map(content["inputs"])
    if not input_map.n_columns == forest.n_inputs == n_columns:
        raise ValueError("its forest does not have one input a column")
    players = _players(content["players"], n_columns)
    head = None if content["head"] is None else head_of(content["head"], forest.n_outputs)
    if (head is None) == (engine_class is ResponseEngine):
        raise ValueError("its engine has no response, or one that it does not need")
    empty = engine_class(Reading(input_map, forest, head), players.columns, explainer.n_jobs)
    engine = _filled(archive, "state", empty)
    output, terms = content["output"], _terms(content["terms"], len(players))
    _known("output", output, _outputs.DEFAULT_ORDER)
    if output != explainer.output:
        raise ValueError(f"it has output={explainer.output!r} and values of the output {output!r}")
    recipe = _outputs.make_recipe(output, terms, engine)
    if recipe.index not in engine.indices:
        raise ValueError(f"its engine has no values of the output {output!r}")
    return Fitted(
        engine=engine,
        players=players,
        output=output,
        terms=terms,
        recipe=recipe,
        selection=_selection(content["selection"], engine.n_outputs),
        template=_template(content["template"], n_columns),
        tags=content["tags"],
        jackknife=_groups(archive, content["groups"], empty),
    )


def _forest(archive: Archive, flags: dict) -> Forest:
    _same_keys("forest", flags, _FLAGS)
    arrays = {
        name: archive.take(f"forest/{name}", dtype, *(None for _ in shape))
        for name, (dtype, shape) in FOREST_ARRAYS.items()
    }
    forest = Forest(**arrays, **flags)
    if [type(flags[name]) for name in _FLAGS] != [int, bool, bool]:
        raise ValueError(f"its forest has {flags}")
    check_arrays(forest)
    return forest


def _filled(archive: Archive, prefix: str, empty: TreeEngine) -> TreeEngine:
    """A copy of an engine with the state below a prefix."""
    engine = copy(empty)
    names = [name for name in archive.arrays if name.startswith(f"{prefix}/")]
    arrays = {name.removeprefix(f"{prefix}/"): archive.arrays.pop(name) for name in names}
    engine.unpack(arrays)
    if set(arrays) != set(engine.packed()):
        raise ValueError(f"its {prefix} has unknown arrays: {sorted(arrays)}")
    return engine


def _groups(archive: Archive, found: dict | None, empty: TreeEngine) -> Jackknife | None:
    if found is None:
        return None
    _same_keys("groups", found, {"filled", "weight", "squares"})
    filled, weight = found["filled"], found["weight"]
    squares = float(found["squares"])
    if weight.shape != (len(filled),) or len(filled) < 2 or np.any((weight > 0) != filled):
        raise ValueError("its groups have weights that are none")
    if not (np.isfinite(weight).all() and 0 < squares < np.inf):
        raise ValueError("its groups have weights that are not finite")
    parts = tuple(
        _filled(archive, f"groups/{g}", empty) if is_filled else None
        for g, is_filled in enumerate(filled)
    )
    return Jackknife(empty, parts, weight.astype(np.float64), squares)


def _input_map(found: dict) -> InputMap:
    _same_keys("inputs", found, {field.name for field in fields(InputMap)})
    if found["array_dtype"] is not None:
        kinds = {"float32": np.float32, "float64": np.float64}
        found["array_dtype"] = _known("array_dtype", found["array_dtype"], kinds)
    if found["label_key"] is not None:
        found["label_key"] = _known("label_key", found["label_key"], _LABEL_KEYS)
    return InputMap(**found)


def _players(found: dict, n_columns: int) -> Players:
    _same_keys("players", found, {field.name for field in fields(Players)})
    columns = tuple(np.array(columns, dtype=np.intp) for columns in found.pop("columns"))
    if sorted(np.concatenate(columns).tolist()) != list(range(n_columns)):
        raise ValueError("its players do not have each column once")
    players = Players(columns=columns, **found)
    if len(set(players.names)) != len(columns) or len(players.column_names) != n_columns:
        raise ValueError("its players do not have each their name")
    return players


def _terms(found: list, n_players: int) -> list[tuple[int, ...]]:
    known = set(range(n_players))
    for term in found:
        if not isinstance(term, tuple) or not term or sorted(set(term)) != list(term):
            raise ValueError(f"its terms have {term!r}")
        if not known.issuperset(term):
            raise ValueError(f"its term {term!r} has an unknown player")
    if not found:
        raise ValueError("it has no terms")
    return found


def _selection(found: dict, n_outputs: int) -> Selection:
    _same_keys("selection", found, {field.name for field in fields(Selection)})
    outputs = found["outputs"]
    if outputs.dtype.kind not in "iu" or outputs.ndim != 1 or len(outputs) != len(found["names"]):
        raise ValueError("its outputs have no names")
    if not len(outputs) or outputs.min() < 0 or outputs.max() >= n_outputs:
        raise ValueError("its outputs are none of the model")
    return Selection(**found)


def _template(found: dict, n_columns: int) -> Template:
    _same_keys("template", found, {field.name for field in fields(Template)})
    row, points, labelled = decode_row(found["row"]), found["points"], found["labelled"]
    lengths = {row.shape[1], len(labelled), n_columns if points is None else len(points)}
    if lengths != {n_columns}:
        raise ValueError("its row of the background has another number of columns")
    return Template(row, points, labelled)


def _known(what: str, name, known):
    """One of the known things, by its name."""
    if name not in known:
        raise ValueError(f"its {what} is {name!r}, which is none of {sorted(known)}")
    return known[name]


def _same_keys(what: str, found: dict, known) -> None:
    if not isinstance(found, dict) or set(found) != set(known):
        raise ValueError(f"its {what} has other entries than {sorted(known)}")

"""Pickles that can be opened where the model's library is not installed."""

from __future__ import annotations

import copy
import pickle
from typing import ClassVar


class MissingLibraryError(AttributeError):
    """A model cannot be unpickled here, so that the attribute is missing."""


class PackedModelMixin:
    """Keeps some attributes as one nested byte string within a pickle.

    An unpickled object opens it when one of them is asked for, and not before.
    """

    _packed_names: ClassVar[tuple[str, ...]] = ("estimator", "estimator_")

    def __getstate__(self):
        state = dict(super().__getstate__())
        apart = {name: state.pop(name) for name in self._packed_names if name in state}
        if apart:
            state["_packed"] = self._pack(apart)
        return state

    def _pack(self, apart: dict) -> bytes:
        try:
            return pickle.dumps(apart, protocol=pickle.HIGHEST_PROTOCOL)
        except Exception as error:  # every model has its own reasons
            raise pickle.PicklingError(
                f"the model within this {type(self).__name__} does not pickle ({error}); forget "
                "the model by detach(), explaining works without it"
            ) from error

    def __getattr__(self, name: str):
        own = vars(self)
        packed = own.get("_packed")
        if packed is not None and name in self._packed_names:
            opened = self._open(packed)
            own.update(opened)  # before the bytes go, for the sake of other threads
            own.pop("_packed", None)
            if name in opened:
                return opened[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _open(self, packed: bytes) -> dict:
        try:
            return pickle.loads(packed)
        except ImportError as error:
            raise MissingLibraryError(
                f"the model within this {type(self).__name__} needs a library that is not "
                f"installed ({error}); explaining works without it, and detach() forgets the model"
            ) from error

    def __repr__(self, **kwargs) -> str:
        try:
            return super().__repr__(**kwargs)
        except MissingLibraryError:
            return f"{type(self).__name__}(<a model whose library is not installed>)"

    def _repr_mimebundle_(self, **kwargs) -> dict:
        try:
            return super()._repr_mimebundle_(**kwargs)
        except MissingLibraryError:
            return {"text/plain": repr(self)}

    def __deepcopy__(self, memo):
        new = type(self).__new__(type(self))
        memo[id(self)] = new
        vars(new).update(copy.deepcopy(vars(self), memo))
        return new

    def detach(self):
        """Forget the model; explaining goes on without it.

        Returns
        -------
        self : object
            With ``estimator=None`` and without ``estimator_``.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from fastpd_sklearn import ALEExplainer
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
        >>> explainer = ALEExplainer().fit(model, X).detach()
        >>> hasattr(explainer, "estimator_")
        False
        >>> explainer.transform(X).shape
        (4, 2)
        """
        own = vars(self)
        for name in ("_packed", "estimator_"):
            own.pop(name, None)
        self.estimator = None
        return self

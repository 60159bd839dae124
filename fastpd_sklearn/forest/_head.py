"""From the margins that the trees add up to, to the response that a model predicts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, softmax

_INVERSE_LINKS = {
    "identity": lambda margin: margin,
    "exp": np.exp,
    "logit": expit,
    "softmax": lambda margin: softmax(margin, axis=1),
    "multi_logit": expit,
}


@dataclass(frozen=True)
class Head:
    """What the raw outputs of a forest mean.

    Parameters
    ----------
    additive : tuple of str
        The response methods whose answer *is* the sum of the trees, the most natural one
        first: some of "raw", "predict", "predict_proba", "decision_function". "raw" is
        always among them, unless the sum of the trees is none of anybody's concern: the margins
        of several models that the response mixes. Then there is none, and "auto" is the
        ``link_method``.
    link : {"identity", "exp", "logit", "softmax", "multi_logit"} or callable, default="identity"
        Inverse link from the margins to the response of ``link_method``. "logit": one
        margin, the log odds of ``classes[1]``; "multi_logit": one independent log odds an
        output. A function from an array of shape (n_rows, n_outputs) to one of shape
        (n_rows, n_responses), which can be pickled.
    link_method : str, default=None
        The response method that is the inverse link of the margins ("predict_proba" for a
        boosted classifier, "predict" for Poisson regression); None where there is none.
    classes : ndarray of shape (n_classes,), default=None
        Class labels of a classifier with one target. With two classes there is one output,
        that of ``classes[1]``; otherwise one output a class.
    output_names : tuple of str, default=None
        Names of the outputs where there are several; made from ``classes`` if None.
    note : str, default=""
        What "raw" is, in words, where no method of the model answers with it.
    rounding : ndarray of shape (n_outputs,), default=None
        How far rounding may take the library's own raw outputs from the sum of the trees, where
        the reader's ``tolerance`` does not tell: for a model made of models of other libraries.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpd_sklearn.forest import Head
    >>> head = Head(
    ...     additive=("decision_function", "raw"),
    ...     link="logit",
    ...     link_method="predict_proba",
    ...     classes=np.array(["no", "yes"]),
    ... )
    >>> head.respond(np.array([[0.0], [2.0]])).round(3)
    array([[0.5  ],
           [0.881]])
    """

    additive: tuple[str, ...]
    link: str | Callable[[np.ndarray], np.ndarray] = "identity"
    link_method: str | None = None
    classes: np.ndarray | None = None
    output_names: tuple[str, ...] | None = None
    note: str = ""
    rounding: np.ndarray | None = None

    def __post_init__(self) -> None:
        if not callable(self.link) and self.link not in _INVERSE_LINKS:
            raise ValueError(f"link={self.link!r} is not one of {sorted(_INVERSE_LINKS)}")
        if "raw" not in self.additive and (self.additive or self.link_method is None):
            raise ValueError(f"additive={self.additive!r} lacks 'raw'")

    @property
    def natural(self) -> str:
        """The response that "auto" means: a sum of trees where there is one."""
        return self.additive[0] if self.additive else self.link_method

    def names(self, n_outputs: int) -> tuple[str, ...]:
        """Names of the outputs, one each.

        Parameters
        ----------
        n_outputs : int

        Returns
        -------
        tuple of str

        Examples
        --------
        >>> import numpy as np
        >>> from fastpd_sklearn.forest import Head
        >>> Head(additive=("raw",), classes=np.array(["a", "b", "c"])).names(3)
        ('a', 'b', 'c')
        """
        if self.output_names is not None:
            return self.output_names
        if self.classes is not None and n_outputs == len(self.classes):
            return tuple(str(c) for c in self.classes)
        return tuple(str(k) for k in range(n_outputs))

    def respond(self, margins: np.ndarray) -> np.ndarray:
        """Apply the inverse link.

        Parameters
        ----------
        margins : ndarray of shape (n_rows, n_outputs)

        Returns
        -------
        ndarray of shape (n_rows, n_responses)
            The answer of ``link_method`` (with two classes that of ``classes[1]`` alone).

        Examples
        --------
        >>> import numpy as np
        >>> from fastpd_sklearn.forest import Head
        >>> Head(additive=("raw",), link="softmax").respond(np.array([[0.0, np.log(3.0)]]))
        array([[0.25, 0.75]])
        """
        return self.link(margins) if callable(self.link) else _INVERSE_LINKS[self.link](margins)

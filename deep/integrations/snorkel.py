"""Snorkel's own label model behind deep's contract of ensemblers: ``--ensembler snorkel-labelmodel``."""

import contextlib
import random
import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np

from deep._util.checks import Floats, Votes, check_above, check_count
from deep.ensembles import LabelModel
from deep.exceptions import InputError, needs_extra

# How many learning rates are tried, each a tenth of the one before.
N_LEARNING_RATES = 4


@dataclass(eq=False, repr=False)
class SnorkelLabelModel(LabelModel):
    """Snorkel's label model, fitted by the library itself: torch, single precision, 100 steps.

    How P follows from the rates is as in :class:`LabelModel`, which goes to the minimum of the same loss. The library
    takes no weights: the one thing it learns from the rows, the share on which each pair of votes meets, is given
    weighted here, and so is the bound on its rates, which makes it exact on weighted rows. The library seeds the
    generators of Python, numpy and torch; all three are left as they were. It is tried where it is named.

    Parameters
    ----------
    n_epochs : int, default=100
        At least 1: steps of gradient descent.
    lr : float, default=0.01
        Above 0: their learning rate. Where the descent diverges (at 0.01 beyond 100 to 150 voters that all vote on all
        rows) a tenth of it is tried, at most three times.
    l2, class_balance, random_state
        As in :class:`LabelModel`.

    Raises
    ------
    MissingDependencyError
        In `fit`: ``deep-judges[snorkel]`` is not installed.
    InputError
        In `fit`: the descent diverged at every rate, or a parameter is out of range.

    References
    ----------
    .. [1] Ratner et al., "Training complex models with multi-task weak supervision", AAAI 2019.
       https://arxiv.org/abs/1810.02840

    Examples
    --------
    >>> from deep.integrations.snorkel import SnorkelLabelModel
    >>> X = [[1, 1, 1], [1, 1, 0], [0, 0, 1], [0, 0, 0]]
    >>> model = SnorkelLabelModel(1000, lr=0.1).fit(X, sample_weight=[40, 10, 10, 40])
    >>> model.predict_proba([[1, 1, -1], [-1, -1, 0], [-1, -1, -1]])[:, 1].round(1).tolist()
    [1.0, 0.2, 0.5]
    """

    library: ClassVar[str] = "snorkel"

    n_epochs: int = 100
    _: KW_ONLY
    lr: float = 0.01

    def _check_params(self) -> None:
        super()._check_params()
        check_count(self.n_epochs, "n_epochs")
        check_above(self.lr, 0, "lr")

    def _mu(self, X: Votes, w: Floats) -> Floats:
        rates = [self.lr / 10**step for step in range(N_LEARNING_RATES)]
        descents = (self._descend(X, w, rate) for rate in rates)
        mu = next((result for result in descents if np.isfinite(result).all()), None)
        if mu is None:
            raise InputError(
                f"`lr` must be small enough for the descent to converge. Got {self.lr!r} for {X.shape[1]} voters, and "
                f"{rates[-1]:g} was tried too. Fit fewer voters."
            )
        return mu

    def _descend(self, X: Votes, w: Floats, rate: float) -> Floats:
        """Return snorkel's mu, shape (2 * n_voters, 2), or NaN where its loss is."""
        with needs_extra("snorkel", what="`ensembler` 'snorkel-labelmodel'"), _random_state_kept():
            model = _weighted_model()(cardinality=2, verbose=False)
            model.row_weights = w
            try:
                model.fit(
                    X.astype(np.int64),
                    class_balance=list(self.class_balance),
                    progress_bar=False,
                    n_epochs=self.n_epochs,
                    lr=rate,
                    l2=self.l2,
                    seed=self.random_state,
                    mu_eps=min(0.01, 10 ** -float(np.ceil(np.log10(w.sum())))),
                )
            except Exception as error:
                if "Loss is NaN" not in str(error):
                    raise
                return np.full((2 * X.shape[1], 2), np.nan)
        return np.asarray(model.mu.detach().numpy(), dtype=np.float64)


@cache
def _weighted_model() -> Any:
    """Return snorkel's class with one step changed: the overlaps of votes are those of weighted rows."""
    import torch
    from snorkel.labeling.model.label_model import LabelModel as Library

    class WeightedLabelModel(Library):
        row_weights: Floats

        def _generate_O(self, L: Votes, higher_order: bool = False) -> None:  # noqa: N802 - snorkel's name
            votes = self._get_augmented_label_matrix(L, higher_order=higher_order)
            self.d = votes.shape[1]
            overlaps = votes.T @ (self.row_weights[:, None] * votes) / self.row_weights.sum()
            self.O = torch.from_numpy(overlaps).float().to(self.config.device)

    return WeightedLabelModel


@contextlib.contextmanager
def _random_state_kept() -> Iterator[None]:
    """Leave the global generators as they were: snorkel seeds them, and draws from numpy's as it is imported."""
    python, numbers = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        import torch

        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numbers)  # noqa: NPY002

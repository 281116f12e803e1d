"""The leaves that many rows fall in, found by XGBoost's predictor, and the P that stands there in double precision.

XGBoost adds up in single precision. So it is given no P to add, but numbers of leaves: each of its classes is a pair of
trees, whose sum says which leaf of either a row is in, a whole number that single precision holds. What a row is
compared with is rounded so that every float32 goes the way that the threshold in double precision sends it.
"""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from deep._checks import Floats
from deep._checks import Rows as Positions

if TYPE_CHECKING:
    import xgboost

MOST_LEAVES = 64
"""Of a tree; the P of all pairs of leaves of two trees then take 32 KiB, which a processor's cache holds."""

ROOT_PARENT = 2**31 - 1
"""What XGBoost's format has as the parent of a root."""


@dataclass(frozen=True, eq=False)
class LeafNumbers:
    """Finds the leaves of rows, and adds up their P.

    Parameters
    ----------
    booster : xgboost.Booster
        Gives each row the number of its pair of leaves, shape (n_rows, n_pairs).
    p : list of ndarray
        By pair of trees: the sum of P of each pair of their leaves.
    """

    booster: "xgboost.Booster"
    p: list[Floats]

    def sum_of_p(self, features: npt.NDArray[np.float32]) -> Floats:
        """Return the sum of P over all trees for each row of features."""
        compared = np.ascontiguousarray(features[:, : self.booster.num_features()])
        found = self.booster.inplace_predict(compared, predict_type="margin")
        total = np.zeros(len(features))
        for pair, p in zip(found.T.astype(np.intp, order="C"), self.p, strict=True):
            total += p.take(pair, mode="clip")  # none is out of range; it is the quickest way to look up
        return total


def number_leaves(
    feature: Positions, threshold: Floats, left: Positions, right: Positions, p: Floats, roots: Positions
) -> LeafNumbers | None:
    """Return the finder of the leaves of many rows; parameters as of :class:`Trees`.

    None where a tree has more than `MOST_LEAVES`, shares nodes with another or has a threshold beyond single precision,
    none of which a fit makes, and where there are fewer than three trees.
    """
    ends = np.append(roots[1:], len(feature))
    if len(roots) < 3 or roots[0] != 0 or (ends <= roots).any():
        return None
    cuts = _cuts(threshold)
    trees, p_of = [], []
    for start, end in zip(roots.tolist(), ends.tolist(), strict=True):
        tree = _tree(
            feature[start:end], cuts[start:end], left[start:end] - start, right[start:end] - start, p[start:end]
        )
        if tree is None:
            return None
        trees.append(tree)
        p_of.append(tree.p[tree.leaf])
    pairs = [p_of[i : i + 2] for i in range(0, len(p_of), 2)]
    sizes = [len(pair[1]) if len(pair) == 2 and i == 0 else 1 for pair in pairs for i in range(len(pair))]
    tables = [pair[0] if len(pair) == 1 else np.add.outer(*pair).ravel() for pair in pairs]
    return LeafNumbers(_booster(trees, sizes, int(feature.max()) + 1), tables)


@dataclass(frozen=True, eq=False)
class _Tree:
    """One tree, its nodes numbered from 0 level by level: a right child follows the left one, as XGBoost takes it."""

    feature: Positions
    cut: npt.NDArray[np.float32]
    left: Positions
    p: Floats

    @property
    def leaf(self) -> npt.NDArray[np.bool_]:
        return self.feature < 0

    def document(self, number: int, weight: int, n_features: int) -> dict[str, Any]:
        """Return the tree in XGBoost's format; its leaves say their own number times `weight`."""
        n, inner = len(self.feature), np.flatnonzero(~self.leaf)
        values = self.cut.astype(np.float64)
        values[self.leaf] = weight * np.arange(self.leaf.sum())
        parents = np.full(n, ROOT_PARENT)
        left = self.left[inner]
        parents[left] = parents[left + 1] = inner
        no, none = [0] * n, [0.0] * n
        return {
            "base_weights": none,
            "categories": [],
            "categories_nodes": [],
            "categories_segments": [],
            "categories_sizes": [],
            "default_left": no,
            "id": number,
            "left_children": np.where(self.leaf, -1, self.left).tolist(),
            "loss_changes": none,
            "parents": parents.tolist(),
            "right_children": np.where(self.leaf, -1, self.left + 1).tolist(),
            "split_conditions": values.tolist(),
            "split_indices": np.where(self.leaf, 0, self.feature).tolist(),
            "split_type": no,
            "sum_hessian": none,
            "tree_param": {
                "num_deleted": "0",
                "num_feature": str(n_features),
                "num_nodes": str(n),
                "size_leaf_vector": "1",
            },
        }


def _tree(
    feature: Positions, cut: npt.NDArray[np.float32], left: Positions, right: Positions, p: Floats
) -> _Tree | None:
    """Return a tree in the order of its levels; None where it is none, or XGBoost cannot hold it."""
    inner = feature >= 0
    children = np.sort(np.concatenate([left[inner], right[inner]]))
    alone = np.array_equal(children, np.arange(1, len(feature)))
    if not (alone and len(feature) < 2 * MOST_LEAVES and np.isfinite(cut[inner]).all()):
        return None
    order = [0]
    for node in order:
        if inner[node]:
            order += [int(left[node]), int(right[node])]
    if len(order) < len(feature):  # some nodes follow each other in a circle
        return None
    place = np.argsort(order)
    return _Tree(feature[order], cut[order], place[left[order]], p[order])


def _cuts(threshold: Floats) -> npt.NDArray[np.float32]:
    """Return the least float32 above each threshold: what is below it is at most the threshold."""
    with np.errstate(over="ignore"):  # an infinite cut is none, and is not taken
        cut = threshold.astype(np.float32)
    above = np.nextafter(cut, np.float32(np.inf))
    return np.where(cut.astype(np.float64) > threshold, cut, above)


def _booster(trees: list[_Tree], weights: list[int], n_features: int) -> "xgboost.Booster":
    """Return XGBoost's model of trees, by its documented JSON format."""
    import xgboost

    classes = [number // 2 for number in range(len(trees))]
    n_classes, n_features = classes[-1] + 1, max(n_features, 1)
    found = [tree.document(i, weights[i], n_features) for i, tree in enumerate(trees)]
    model = {
        "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(len(trees))},
        "iteration_indptr": [0, len(trees)],
        "tree_info": classes,
        "trees": found,
    }
    parameters = {
        "base_score": "0E0",
        "boost_from_average": "0",
        "num_class": str(n_classes),
        "num_feature": str(n_features),
        "num_target": "1",
    }
    learner = {
        "attributes": {},
        "feature_names": [],
        "feature_types": [],
        "gradient_booster": {"model": model, "name": "gbtree"},
        "learner_model_param": parameters,
        "objective": {"name": "multi:softprob", "softmax_multiclass_param": {"num_class": str(n_classes)}},
    }
    booster = xgboost.Booster()
    booster.load_model(bytearray(json.dumps({"version": [2, 0, 0], "learner": learner}).encode()))
    booster.set_param({"nthread": 1})
    return booster

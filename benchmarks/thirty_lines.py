"""P(consistent) of an unlabeled dataset by scikit-learn alone: logistic regression on votes, then Platt; a rival.

python benchmarks/thirty_lines.py votes.parquet my-dataset > scores.csv
"""

import sys

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, KFold, cross_val_predict


def thirty_lines(X, y, groups, X_new):
    """Return P of new rows; X holds 1, -1 and 0 for no vote. Folds are datasets, of one dataset five of its rows."""
    several = len(set(groups)) > 1
    folds = GroupKFold(min(len(set(groups)), 5)) if several else KFold(5, shuffle=True, random_state=0)
    best = None
    for C in (0.01, 0.1, 1.0, 10.0):
        model = LogisticRegression(C=C, class_weight="balanced", max_iter=500)
        score = cross_val_predict(model, X, y, groups=groups if several else None, cv=folds, method="decision_function")
        loss = np.logaddexp(0, np.where(y == 1, -score, score))
        loss = (loss[y == 1].mean() + loss[y == 0].mean()) / 2
        best = min(best or (loss, C, score), (loss, C, score), key=lambda found: found[0])
    model = LogisticRegression(C=best[1], class_weight="balanced", max_iter=500).fit(X, y)
    platt = LogisticRegression(C=1e6).fit(best[2][:, None], y)
    return platt.predict_proba(model.decision_function(X_new)[:, None])[:, 1]


if __name__ == "__main__":
    table = pd.read_parquet(sys.argv[1]) if sys.argv[1].endswith("parquet") else pd.read_csv(sys.argv[1])
    votes = table.drop(columns=["dataset", "item_id", "label", "document_id"], errors="ignore")
    X, new = votes.map({1: 1, 0: -1}.get).fillna(0).to_numpy(float), (table.dataset == sys.argv[2]).to_numpy()
    p = thirty_lines(X[~new], table.label[~new].to_numpy(int), table.dataset[~new].to_numpy(), X[new])
    table.loc[new, ["dataset", "item_id"]].assign(p_consistent=p).to_csv(sys.stdout, index=False)

"""What deep's public Python names give on a panel that `oracle.py` wrote, as JSON: python oracle_api.py PANEL."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

import deep


def plain(table: Any) -> Any:
    """Return a data frame as JSON."""
    return json.loads(table.to_json(orient="split"))


def tried(work: Callable[[], Any]) -> Any:
    """Return what a piece of work gives, or the line of its error."""
    try:
        return work()
    except deep.InputError as error:
        return str(error)


def shown(model: deep.Model, votes: Any, labels: Any) -> dict[str, Any]:
    """Return what a model says of votes: alone, adapted without and with labels, and loaded again."""
    with TemporaryDirectory() as folder:
        model.save(Path(folder, "model.json"))
        again = deep.load(Path(folder, "model.json"))
    return {
        "frame": plain(model.score_frame(votes)),
        "at half": model.score(votes, prior=0.5).tolist(),
        "again": again.score(votes).tolist(),
        "adapted": tried(lambda: plain(deep.adapt(model, votes).score_frame(votes))),
        "corrected": tried(lambda: plain(deep.adapt(model, votes, labels).score_frame(votes))),
        "estimate": tried(lambda: plain(deep.estimate(model, votes, labels))),
        "check": tried(lambda: repr(deep.check(model, votes, labels))),
    }


def main() -> None:
    """Fit each regime, and print."""
    folder = Path(sys.argv[1])
    target, labels = pd.read_csv(folder / "target.csv"), pd.read_csv(folder / "labels.csv")
    fits = {
        "none": lambda: deep.fit(target),
        "own": lambda: deep.fit(target, labels),
        **{name: lambda name=name: deep.fit(folder / f"{name}.csv") for name in ("one", "two", "many")},
    }
    result = {name: shown(fit(), target, labels) for name, fit in fits.items()}
    texts = [deep.Example(source="It rose by 14 cm.", claim="It rose by 41 cm.", example_id="a")]
    votes = deep.ask(texts, ["numbers", "coverage"])
    json.dump(result | {"asked": [votes.voter_names, votes.votes.tolist()]}, sys.stdout)


if __name__ == "__main__":
    main()

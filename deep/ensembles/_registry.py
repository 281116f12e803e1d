"""The ensemblers by the names that options and files use."""

from deep import ensembles
from deep._util.entry_points import ENSEMBLER, OWN, load_own
from deep.base import BaseEnsembler
from deep.ensembles._names import ENSEMBLER_NAMES, NAMED_ONLY

_OTHERS = {name: load_own(ENSEMBLER, name) for name in OWN[ENSEMBLER]}
_OTHERS |= dict.fromkeys(NAMED_ONLY, ensembles.SnorkelLabelModel)

ENSEMBLERS: dict[str, type[BaseEnsembler]] = {
    name: _OTHERS.get(name) or getattr(ensembles, name) for name in ENSEMBLER_NAMES
}
"""The ensemblers by name, in the order of `ENSEMBLER_NAMES`."""

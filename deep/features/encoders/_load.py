"""Network judges by the names that options and votes use."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from deep.features.encoders._embedding import load_embedding
from deep.features.encoders._encoder import SUMMAC_ZS, load_encoder, load_summac
from deep.features.encoders._judge import NetworkJudge
from deep.features.encoders._published import load_hhem, load_lettucedetect, load_minicheck

ENCODERS: Mapping[str, Callable[..., NetworkJudge]] = {
    "hhem": load_hhem,
    "lettucedetect": load_lettucedetect,
    "minicheck": load_minicheck,
    SUMMAC_ZS: load_summac,
}
"""The published ways to use an encoder, by the name that stands before its id or folder, and before its votes."""


def load_network_judge(given: str, *, embedding: bool = False) -> NetworkJudge:
    """Load a network as options name it: ``[WAY:][NAME=]ID|FOLDER``.

    Parameters
    ----------
    given : str
        WAY is a key of `ENCODERS`; without it :func:`load_encoder` decides. NAME names the model in its column.
    embedding : bool, default=False
        Load a sentence-embedding model.
    """
    way, _, rest = given.partition(":")
    load: Callable[..., NetworkJudge] = load_embedding if embedding else load_encoder
    if not embedding and rest and way in ENCODERS:
        load, given = ENCODERS[way], rest
    name, _, place = given.partition("=")
    return load(place, model_id=name) if place and not Path(given).exists() else load(given)


def load_again(judge: str, place: str, options: Mapping[str, Any]) -> NetworkJudge:
    """Load the network judge of a voter by its name and the settings that its votes were made with."""
    if judge == "embedding":
        return load_embedding(place, **options)
    if judge in ENCODERS:
        return ENCODERS[judge](place, **options)
    return load_encoder(place, **{**options, "aggregation": judge.removeprefix("nli-")})

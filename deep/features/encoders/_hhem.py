"""HHEM-2.1: a T5 encoder that reads source and claim in one prompt and answers at the first token."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import softmax

from deep._checks import Floats
from deep.exceptions import InputError
from deep.features.encoders._checker import CheckerJudge, Pair
from deep.features.encoders._locate import fingerprint, model_folder, model_name, one_line, require_libraries
from deep.features.encoders._network import Network, check_batch_size, place, quiet, read_settings

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

NO_LIMIT = 1_000_000
"""Positions are relative: the memory limits an input first."""

BLANKS = ("{text1}", "{text2}")


@dataclass(frozen=True)
class HHEMJudge(CheckerJudge):
    """HHEM-2.1 [1]_ as published; made by :func:`load_hhem`. It reads the whole source at once.

    References
    ----------
    .. [1] Vectara, HHEM-2.1-Open, 2024. https://huggingface.co/vectara/hallucination_evaluation_model
    """

    prompt: str = "{text1} {text2}"
    name: str = field(init=False, default="hhem")

    def _input(self, pair: Pair) -> str:
        before, _, rest = self.prompt.partition(BLANKS[0])
        between, _, after = rest.partition(BLANKS[1])
        return f"{before}{pair[0]}{between}{pair[1]}{after}"

    def _tokens_beside(self, claim: str) -> int:
        return self.network.count([self._input(("", claim))])[0] + self.network.special_tokens(pair=False)

    def _cut(self, source: str, room: int) -> tuple[str, ...]:
        """Return the whole source, or nothing where it is too long: it is never read in parts."""
        return (source,) if self.network.count([source])[0] <= room else ()

    def _measure(self, pairs: list[Pair]) -> list[Floats]:
        logits = np.empty((len(pairs), 2))
        for at, output, _ in self.network.batches([self._input(pair) for pair in pairs]):
            logits[at] = output.logits[:, 0, :].float().cpu().numpy()
        return list(softmax(logits, axis=1)[:, 1:])


def load_hhem(
    id_or_path: str | Path,
    *,
    foundation: str | Path | None = None,
    threshold: float = 0.5,
    batch_size: int = 8,
    device: str | None = None,
    revision: str | None = None,
    max_tokens: int | None = None,
    model_id: str | None = None,
) -> HHEMJudge:
    """Make a judge of HHEM-2.1 without running the code that comes with it.

    Parameters
    ----------
    id_or_path : str or Path
        ``vectara/hallucination_evaluation_model``, or a folder with its config.json and model.safetensors.
    foundation : str or Path, optional
        The T5 whose configuration and tokenizer it uses, by id or folder; default: the one that config.json names.
    threshold : float, default=0.5
        The vote is 1 where P(consistent) is at least this.
    batch_size, device, revision, max_tokens, model_id
        As for :func:`load_encoder`; there is no limit of tokens unless one is given.

    Raises
    ------
    InputError
        There is no such model or foundation, or it lacks its prompt or weights.
    MissingDependencyError
        torch or transformers is not installed.
    """
    check_batch_size(batch_size)
    folder = model_folder(id_or_path, revision)
    said = read_settings(folder / "config.json")
    prompt = str(said.get("prompt", ""))
    if not all(blank in prompt for blank in BLANKS):
        raise InputError(
            f"`id_or_path` must hold HHEM's config.json, whose prompt has {' and '.join(BLANKS)}. Got {prompt!r}."
        )
    require_libraries()
    with quiet():
        model, tokenizer = _load(folder, str(foundation or said.get("foundation", "")))
    network = Network(
        tokenizer=tokenizer,
        model=place(model.eval(), device),
        model_id=model_id or model_name(id_or_path, folder),
        folder=folder,
        fingerprint=fingerprint(folder),
        max_tokens=max_tokens or NO_LIMIT,
        batch_size=batch_size,
    )
    return HHEMJudge(network, threshold, prompt=prompt)


def _load(folder: Path, foundation: str) -> "tuple[PreTrainedModel, PreTrainedTokenizerBase]":
    """Return the T5 of the foundation with HHEM's weights, and the foundation's tokenizer."""
    from safetensors.torch import load_file
    from transformers import AutoConfig, AutoTokenizer, T5ForTokenClassification

    try:
        config, tokenizer = AutoConfig.from_pretrained(foundation), AutoTokenizer.from_pretrained(foundation)
    except Exception as error:  # transformers raises whatever the damaged file makes it raise
        raise InputError(
            f"`foundation` must be a T5 with its configuration and tokenizer. Got {foundation!r}: {one_line(error)}"
        ) from None
    try:
        weights = {name.removeprefix("t5."): value for name, value in load_file(folder / "model.safetensors").items()}
        weights.setdefault("transformer.encoder.embed_tokens.weight", weights["transformer.shared.weight"])
        model = T5ForTokenClassification(config)
        model.load_state_dict(weights)
    except (KeyError, OSError, RuntimeError) as error:
        raise InputError(
            f"`id_or_path` must hold HHEM's weights for the foundation {foundation!r} in model.safetensors. "
            f"Got {folder.name!r}: {one_line(error)}"
        ) from None
    return model, tokenizer

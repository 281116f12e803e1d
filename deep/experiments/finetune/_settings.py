"""The settings of a fine-tuning: those that the papers state, and our own where they are silent."""

from dataclasses import asdict, dataclass, fields, replace

from deep._files import JsonObject
from deep.exceptions import InputError

SCHEDULES = ("constant", "cosine", "linear")


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """The settings of a fine-tuning; the defaults are ours.

    Parameters
    ----------
    epochs : float
        Passes over the data.
    batch_size : int
        Replies a step.
    accumulate : int
        Batches whose gradients are summed before the weights move.
    learning_rate : float
        At its highest.
    beta1, beta2 : float
        Of Adam. There is no weight decay, so AdamW is Adam.
    schedule : {'constant', 'cosine', 'linear'}
        How the learning rate falls after the warm-up.
    warmup : float
        Share of the steps over which the learning rate rises from 0.
    max_length : int or None
        Replies whose conversation is more tokens than this are left out, and counted; None: the model's limit.
    lora_rank, lora_alpha : int
        Of the low-rank matrices, where they are used.
    seed : int
        Of the order of the data, of dropout and of LoRA's start.
    """

    epochs: float = 3.0
    batch_size: int = 2
    accumulate: int = 1
    learning_rate: float = 2e-5
    beta1: float = 0.9
    beta2: float = 0.999
    schedule: str = "cosine"
    warmup: float = 0.02
    max_length: int | None = None
    lora_rank: int = 16
    lora_alpha: int = 32
    seed: int = 0

    def __post_init__(self) -> None:
        for name, most in MOST.items():
            _check(name, getattr(self, name), 1 <= getattr(self, name) <= most, f"from 1 to {most:,}")
        _check("epochs", self.epochs, 0 < self.epochs <= MOST_EPOCHS, f"above 0, up to {MOST_EPOCHS:,}")
        _check("learning_rate", self.learning_rate, 0 < self.learning_rate < 1, "above 0 and below 1")
        for name in ("beta1", "beta2", "warmup"):
            _check(name, getattr(self, name), 0 <= getattr(self, name) < 1, "in [0, 1)")
        _check("max_length", self.max_length, self.max_length is None or self.max_length >= 1, "at least 1")
        _check("seed", self.seed, 0 <= self.seed < 2**32, "from 0 to 4294967295")
        if self.schedule not in SCHEDULES:
            raise InputError(f"`schedule` must be one of {', '.join(SCHEDULES)}. Got {self.schedule!r}.")


MOST_EPOCHS = 10_000
"""More than any model is trained for; a number mistyped is not counted to."""

MOST = {"batch_size": 1_000_000, "accumulate": 1_000_000, "lora_rank": 65_536, "lora_alpha": 1_000_000}
"""More than any machine has memory for, or a matrix rows."""

STATED: dict[str, JsonObject] = {
    "probe": {"learning_rate": 2e-5, "beta1": 0.9, "beta2": 0.999, "schedule": "cosine", "warmup": 0.02},
    "cognibench": {"epochs": 3.0, "batch_size": 2, "learning_rate": 5e-5},
}
"""All that each paper states about its own training."""

PRESETS = tuple(sorted(STATED))


def _check(name: str, value: object, fine: bool, must: str) -> None:
    if not fine:
        raise InputError(f"`{name}` must be {must}. Got {value!r}.")


def settings_for(preset: str | None, asked: JsonObject) -> TrainSettings:
    """Return our defaults, over them what a paper states, over that what was asked for.

    Examples
    --------
    >>> from deep.experiments.finetune._settings import settings_for
    >>> settings = settings_for("cognibench", {"batch_size": 8})
    >>> settings.epochs, settings.batch_size, settings.learning_rate
    (3.0, 8, 5e-05)
    """
    known = {field.name for field in fields(TrainSettings)}
    given = {name: value for name, value in asked.items() if name in known and value is not None}
    return replace(TrainSettings(**STATED[preset] if preset else {}), **given)


def as_record(settings: TrainSettings, preset: str | None) -> JsonObject:
    """Return the settings for a file, with the names of those that the paper states."""
    return {**asdict(settings), "preset": preset, "stated_by_paper": sorted(STATED[preset]) if preset else []}

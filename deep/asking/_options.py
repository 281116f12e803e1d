"""How a plan is carried out: where to ask, how fast, for how much, and what to do where a request fails."""

import math
import os
import sys
from argparse import BooleanOptionalAction
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from deep import llm  # its names are loaded as they are used: most of it is SQLAlchemy's
from deep._util.options import option
from deep.exceptions import InputError, note
from deep.records import Judgment

if TYPE_CHECKING:
    from deep.prompt_pool import Chunking, FewShot


OPENAI_URL = "https://api.openai.com/v1"

# The judgments of an example without a source, and of one that was never asked about.
NO_SOURCE = Judgment(-1, "no_source")
NOT_ASKED = Judgment(-1, "not_asked")


def base_url_from(url: str | None) -> str:
    """Return the address to ask at: the one given, else that of the environment, else OpenAI's."""
    if url is not None and not url.strip():  # as of a variable that is not set: it must not mean OpenAI
        raise InputError(f"`base_url` must be an address. Got {url!r}. Leave it out for OPENAI_BASE_URL or OpenAI.")
    return llm.check_base_url(url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL)


def model_of(name: str) -> str:
    """Return the name of an LLM at its provider."""
    return name.partition("/")[2]


CONSTRAINTS = ("none", "schema", "vllm")
"""How an endpoint is told the answers that a reply is chosen from."""


@dataclass(frozen=True)
class PromptOptions:
    """How prompts come to a readable answer, and what they show; see :class:`deep.prompt_pool.PromptJudge`.

    Parameters
    ----------
    repair : bool, default=True
        Ask once more where a reply to a prompt is unparsable (default: yes, but not with --batch or
        --at-most-once, nor for replies of earlier runs without; --repair: for these too).
    constrain : str, default='schema'
        How a direct prompt's reply is limited to its labels: by a JSON schema (default), by structured_outputs of vLLM
        0.12 or later, or not at all.
    few_shot : FewShot, optional
        Labeled examples that prompts show.
    chunk : Chunking, optional
        Cut sources of more than SIZE characters into windows that overlap; about four are a token.
    """

    heading: ClassVar[str] = "what prompts ask and show"

    # This field makes prompts that can be repaired, and `AskOptions.repair` lets a run ask the turns: both must allow
    # it. The parser's default is None, where neither --repair nor --no-repair was given.
    repair: bool = option(True, rare=True, action=BooleanOptionalAction, default=None)
    constrain: str = option("schema", choices=CONSTRAINTS, rare=True)
    # No option of its own: the command makes it of --few-shot and --shots (`console.FewShotOptions`).
    few_shot: "FewShot | None" = None
    chunk: "Chunking | None" = option(None, "SIZE:OVERLAP", rare=True)


@dataclass(frozen=True)
class AnswerOptions:
    """How many answers are asked of a prompt, and how they are drawn.

    Parameters
    ----------
    samples : int, default=1
        Answers to each question.
    soft : bool, default=False
        Ask for log-probabilities, for soft votes beside the hard ones.
    temperature : float, optional
        In place of the prompts' own.
    max_tokens : int, optional
        In place of the prompts' own limit of the answer.
    """

    heading: ClassVar[str] = PromptOptions.heading

    samples: int = option(1, "M")
    temperature: float | None = option(None, "T", rare=True)
    max_tokens: int | None = option(None, "N", rare=True)
    soft: bool = option(False, rare=True)


@dataclass(frozen=True)
class Sampling(PromptOptions, AnswerOptions):
    """How often LLMs are asked, how freely they answer, by which prompts; see :class:`deep.prompt_pool.PromptJudge`.

    Judges of entry points heed `chunk` alone. Labeled examples go to every prompt, but in a pool with prompts that
    have a place of their own for them, such as ``diverse``, only to these.
    """


@dataclass(frozen=True, kw_only=True)
class AskOptions:
    """How a plan is carried out; the fields are named like the options of ``deep ask``.

    Parameters
    ----------
    base_url : str, default=''
        An OpenAI-compatible endpoint (default: OPENAI_BASE_URL, or OpenAI).
    api_key_env : str, default='OPENAI_API_KEY'
        Where the key is (default OPENAI_API_KEY).
    ledger : str
        Default: OUT with .ledger.sqlite for its ending.
    concurrency : str, default='auto'
        Requests in flight (default auto: 2, then by trial).
    rpm : float, optional
        Requests a minute.
    tpm : float, optional
        Tokens a minute.
    budget : float, optional
        Stop before the ledger's total can pass this.
    prices : str, optional
        TOML of dollars per million tokens, before the published prices.
    batch : bool, default=False
        Use the Batch API.
    poll : float, default=30.0
        Seconds between looks at a batch (default 30).
    timeout : float, default=120.0
        Seconds for one attempt (default 120).
    max_attempts : int, default=10
        Attempts at one request (default 10).
    backoff : float, default=0.5
        First wait before a retry, then doubled (default 0.5).
    retry_failed : tuple of str
        Ask again what failed like this.
    at_most_once : bool, default=False
        Never repeat a request whose answer may have been lost.
    repair : bool, optional
        Whether a reply to a prompt that is unparsable is followed by a repair turn; never in a batch or with
        `at_most_once`. Default: only repairs bought by a run that repairs, which leaves older ledgers unchanged.
        True: also where another run bought it.
    max_failure_rate : float, default=0.05
        Noted in the vote files: the share of a voter's requests that may be without a usable answer.
    record : mapping
        Options of the command, for the ledger's list of runs.
    providers : mapping of str to Provider
        LLMs of a plan that are named after their provider, which a plan fills in itself.

    Raises
    ------
    InputError
        A value is out of range.
    """

    heading: ClassVar[str] = "asking LLMs"

    base_url: str = option("", "URL")
    api_key_env: str = option("OPENAI_API_KEY", "VARIABLE", rare=True)
    ledger: str = option(MISSING, "FILE|URL", required=False)
    concurrency: str = option("auto", "auto|N", rare=True)
    rpm: float | None = option(None, "N", rare=True)
    tpm: float | None = option(None, "N", rare=True)
    budget: float | None = option(None, "USD")
    prices: str | None = option(None, "FILE", rare=True)
    batch: bool = option(False, rare=True)
    poll: float = option(30.0, "S", rare=True)
    timeout: float = option(120.0, "S", rare=True)
    max_attempts: int = option(10, "N", rare=True)
    backoff: float = option(0.5, "S", rare=True)
    retry_failed: tuple[str, ...] = option((), "CLASS", rare=True)
    at_most_once: bool = option(False, rare=True)
    repair: bool | None = None
    # As `deep fit` has it. Chosen; no measurement is known: a lower limit refuses judges by chance, a higher one hides
    # silence.
    max_failure_rate: float = 0.05
    record: Mapping[str, object] = field(default_factory=dict)
    providers: "Mapping[str, llm.Provider]" = field(default_factory=dict)

    def __post_init__(self) -> None:
        llm.ConcurrencyLimit.parse(self.concurrency)
        for name in ("rpm", "tpm", "timeout", "max_attempts", "poll"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise InputError(f"`{name}` must be above 0. Got {value!r}.")
        # An infinite wait or budget is a mistake; None stands for no limit.
        for name, most in (("backoff", math.inf), ("budget", math.inf), ("max_failure_rate", 1.0)):
            value = getattr(self, name)
            if (value is not None and not 0 <= value <= most) or value == math.inf:
                raise InputError(f"`{name}` must be 0 or more{', up to 1' if most == 1 else ''}. Got {value!r}.")
        allowed = sorted({*llm.FAILURES, "exported", "refused", "truncated", "unknown", "unparsable"})
        wrong = [name for name in self.retry_failed if name not in allowed]
        if wrong:
            raise InputError(f"`retry_failed` must be one of {', '.join(allowed)}. Got {wrong[0]!r}.")
        if self.at_most_once and "unknown" in self.retry_failed:
            raise InputError("`retry_failed` must not name 'unknown' with `at_most_once`. Got both. Leave one out.")
        if self.repair and (self.batch or self.at_most_once):
            other = "batch" if self.batch else "at_most_once"
            raise InputError(f"`repair` must not be given with `{other}`. Got both. Leave one out.")
        object.__setattr__(self, "base_url", base_url_from(self.base_url or None))
        object.__setattr__(self, "retry_failed", tuple(self.retry_failed))
        if self.prices is not None:
            self.price_book  # noqa: B018  a file that cannot be used is refused before anything is asked

    @property
    def workers(self) -> int | None:
        """The calls of a function side by side; None where `concurrency` is no number: each function has its own."""
        return int(self.concurrency) if self.concurrency.isdigit() else None

    @property
    def repairs(self) -> bool:
        """Whether a run may ask repair turns."""
        return self.repair is not False and not (self.batch or self.at_most_once)

    @cached_property
    def price_book(self) -> "llm.PriceBook":
        """The prices of the endpoint's models."""
        urls = {model_of(name): provider.address for name, provider in self.providers.items()}
        return llm.PriceBook.from_file(self.base_url, self.prices, urls)

    def prices_of(self, llms: Iterable[str]) -> dict[str, dict[str, float]]:
        """Return by LLM the dollars of a million tokens in and out, where they are known."""
        million = {"input": {"input": 1_000_000, "output": 0}, "output": {"input": 0, "output": 1_000_000}}
        result: dict[str, dict[str, float]] = {}
        for name in llms:
            for kind, tokens in million.items():
                if (dollars := self.price_book.cost([name, model_of(name)], tokens)) is not None:
                    result.setdefault(name, {})[kind] = dollars
        return result

    def api_key(self) -> str | None:
        """Return the key from the environment; None where there is none and the endpoint is not OpenAI's own.

        Raises
        ------
        InputError
            A key is needed or is not printable ASCII. The message never holds the value that was given.
        """
        variable = self.api_key_env
        if not variable.isidentifier():
            raise InputError("`api_key_env` must be the name of an environment variable. Got something else.")
        key = os.environ.get(variable, "").strip()
        # The address stands in the ledger and in vote files: a key in it would be published.
        if llm.Redactor(key)(self.base_url) != self.base_url:
            raise InputError(f"`base_url` must not hold the key in `{variable}`: keys come from the environment only.")
        if not key.isascii() or not key.isprintable() or " " in key:
            raise InputError(f"`{variable}` must hold a key of printable ASCII characters. Got something else.")
        if not key and self.base_url == OPENAI_URL:
            raise InputError(
                f"`{variable}` must hold the API key for {OPENAI_URL}. Got nothing. Set it, or give `base_url`."
            )
        return key or None

    @property
    def public_url(self) -> str:
        """The endpoint's address as files may hold it."""
        return llm.public_url(self.base_url)

    def client(self, *, default: bool = True) -> "llm.Client":
        """Return a client of the endpoint, and of those of the providers; without `default`, of these alone."""
        # A few more than requests in flight: one that waits for a connection loses time of its own clock. Eight are one
        # more pool of the client; that number was chosen; no measurement is known.
        room = llm.ConcurrencyLimit.parse(self.concurrency).maximum + 8
        by_endpoint = {provider.endpoint: provider for provider in self.providers.values()}
        others = {}
        for endpoint, row in by_endpoint.items():
            # A provider without a key is sent none: neither OpenAI's nor that of any other variable.
            key = replace(self, base_url=row.address, api_key_env=row.key, providers={}).api_key() if row.key else None
            if key is None and (row.key or row.address == OPENAI_URL):
                raise InputError(f"`{row.key or 'key'}` must hold the API key for {row.name}/.... Got nothing. Set it.")
            others[endpoint] = llm.Client(row.address, key, timeout=self.timeout, max_connections=room, named=True)
            if not row.tried:
                note(f"{row.name} at {endpoint}: as documented ({row.source}); deep has never tried it.")
        if default or not others:
            client = llm.Client(self.base_url, self.api_key(), timeout=self.timeout, max_connections=room)
        else:
            # Nothing is asked at the endpoint of the options, whose key may be missing.
            client = next(iter(others.values()))
        client.others = others
        addresses = [*others, *([self.public_url] if default or not others else [])]
        free = [url for url in addresses if llm.is_loopback(url)]
        if free and self.budget is not None and self.prices is None:
            note(f"--budget does not hold back {free[0]}: a server on this machine costs nothing without --prices.")
        return client

    @property
    def quirks(self) -> "list[llm.Quirk]":
        """The fields that are not sent to the LLMs of providers, which lack them."""
        return [quirk for name, provider in self.providers.items() for quirk in provider.quirks([model_of(name)])]

    def terms(self, spent: float) -> "llm.Terms":
        """Return the limits and prices of a run.

        Parameters
        ----------
        spent : float
            Dollars that other runs have put on the ledger, which count towards the budget.
        """
        # The jitter is as long as the first wait, so that requests that failed together do not come back together.
        retry = llm.RetryPolicy(self.max_attempts, self.backoff, jitter=self.backoff, at_most_once=self.at_most_once)
        return llm.Terms(
            prices=self.price_book,
            concurrency=llm.ConcurrencyLimit.parse(self.concurrency),
            requests_per_minute=llm.Throttle(self.rpm),
            tokens_per_minute=llm.Throttle(self.tpm),
            retry=retry,
            budget=llm.Budget(self.budget, spent, _note_cost_overrun),
        )


def _note_cost_overrun(name: str, cost: float, worst: float) -> None:
    """Say that an answer cost more than was thought possible; the tokens of hidden reasoning may be billed so."""
    note(
        f"An answer of {name} cost ${cost:.4f}, and ${worst:.4f} is the most that its limits allow. "
        "Every request to it is estimated to cost that much more from now on."
    )


@dataclass(slots=True)
class AskProgress:
    """How far a run has come.

    Parameters
    ----------
    tally : Tally
        Counts by voter, and the dollars spent.
    judged, n_examples : int
        Examples that judges without an LLM are done with, and all of them; 0 of 0 while an LLM is asked.
    """

    tally: "llm.Tally"
    judged: int = 0
    n_examples: int = 0


ProgressCallback = Callable[[AskProgress], None]
"""Called about twice a second while an LLM is asked, and after each example that is judged without one."""


def usd_text(dollars: float | None, unpriced: int = 0) -> str:
    """Return an amount in words; one that is not known is said to be unknown.

    Examples
    --------
    >>> from deep.asking._options import usd_text
    >>> usd_text(1.5), usd_text(0.004, unpriced=3), usd_text(0.0, unpriced=3), usd_text(None)
    ('$1.50', '$0.0040 (+ 3 unpriced)', 'unknown', 'unknown')
    """
    if dollars is None or (unpriced and not dollars):
        return "unknown"
    amount = f"${dollars:.2f}" if dollars >= 1 or not dollars else f"${dollars:.4f}"
    return f"{amount} (+ {unpriced} unpriced)" if unpriced else amount


def live_text(progress: AskProgress) -> str:
    """Return one line a voter, and one for the run."""
    tally = progress.tally
    lines = [
        f"{voter}  {counts['done']} done  {counts['failed']} failed  {counts['abstained']} abstained"
        for voter, counts in sorted(tally.by_voter.items())
    ]
    if progress.n_examples:
        return "\n".join([*lines, f"judging {progress.judged}/{progress.n_examples}  {tally.seconds:.0f} s"])
    n_settled = tally.found + tally.answered + tally.failed
    rest = tally.seconds_left
    total = "?" if tally.total is None else str(tally.total)
    clock = "?" if rest is None else f"{int(rest) // 3600}:{int(rest) // 60 % 60:02d}:{int(rest) % 60:02d}"
    lines.append(
        f"{n_settled}/{total}  {tally.rate:.1f} requests/s  {usd_text(tally.cost, tally.unpriced)} so far  {clock} left"
    )
    return "\n".join(lines)


# A sample is proposed that takes about these seconds: three minutes, short enough to wait for. Chosen; no measurement
# is known.
SHORT_RUN_SECONDS = 180.0


def pace_text(tally: "llm.Tally", items: int = 0) -> str:
    """Return how fast answers come and how long the others take, with a sample of the `items` that takes less.

    Examples
    --------
    >>> from deep.asking._options import pace_text
    >>> from deep.llm import Tally
    >>> slow = Tally(180)
    >>> slow._started -= 25
    >>> slow.answered = 5
    >>> pace_text(slow, 180)
    '0.2 replies/s: 175 more questions take about 15 minutes; `--sample 40` takes about 3 minutes.'
    """
    seconds_left, total = tally.seconds_left or 0.0, tally.total or 0
    n = total - tally.found - tally.answered - tally.failed
    pace = f"{tally.rate:.2g} replies/s: {n:,} more questions take about {llm.span(seconds_left)}"
    seconds = total / tally.rate / items if items else math.inf
    # A round number: the pace is told after five answers (`PACE_FROM`), which do not give it to two digits. A sample of
    # more than half of the items would save little.
    few = int(float(f"{SHORT_RUN_SECONDS / seconds:.0e}"))
    return f"{pace}; `--sample {few}` takes about {llm.span(few * seconds)}." if 0 < few <= items / 2 else f"{pace}."


def quirk_lines(quirks: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line for each LLM with the fields of a request that it refuses or ignores, and its own words."""
    lacks: dict[tuple[str, str], list[str]] = {}
    for quirk in quirks:
        words = f"{quirk['parameter']} {quirk['action']} ({quirk['message']})"
        lacks.setdefault((quirk["model"], quirk["endpoint"]), []).append(words)
    for (model, endpoint), fields in lacks.items():
        yield f"{model} at {endpoint}: {', '.join(fields)}"


def notebook_progress() -> ProgressCallback | None:
    """Make a callback that shows the counts of a run below the running cell, in one output that changes.

    Returns
    -------
    callable or None
        None where no notebook is listening: in a script, in a terminal, in IPython's shell there.
    """
    ipython = sys.modules.get("IPython")  # a kernel has loaded it
    shell = None if ipython is None else ipython.get_ipython()
    return None if getattr(shell, "kernel", None) is None else _Output()


class _Output:
    """An output of a notebook's cell."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._text = ""

    def __call__(self, progress: AskProgress) -> None:
        """Show the counts; what has not changed is not sent again."""
        text = live_text(progress)
        if text == self._text:
            return
        self._text = text
        if self._handle is None:
            display = import_module("IPython.display").display  # typed nowhere, and not here outside notebooks
            self._handle = display({"text/plain": text}, raw=True, display_id=True)
        else:
            self._handle.update({"text/plain": text}, raw=True)

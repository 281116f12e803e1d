"""One prompt: what it must be, what it says to the judge, and how it reads the reply."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import cached_property
from hashlib import sha256
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from deep.exceptions import InputError
from deep.judges import Choice
from deep.prompt_pool._answer_form import AnswerForm, Logprobs, choice_of, object_schema, repair_text
from deep.prompt_pool._material import PLACEHOLDER, Material, render
from deep.prompt_pool._reader import Kind, Output
from deep.prompt_pool._sayings import normalise_label
from deep.records import Example, Judgment

# How the votes on the windows of a long source are combined.
Rule = Literal["all", "any"]

# The version of fences and markers, raised when they change, since the judge then reads other text.
RENDERING = 1

# The fields by which a prompt says how it is to err in a way of its own, with the words of each. The error itself is
# told in `unshared_error`.
PURPOSE_WORDS: dict[str, tuple[str, ...]] = {
    "strictness": ("even", "lenient", "strict"),
    "expected_tpr": ("higher", "lower", "same"),
    "expected_tnr": ("higher", "lower", "same"),
}

# What is written about a prompt; a better citation must not make a new column or buy an answer again.
_NOT_HASHED = ("family", "follows", "threshold_reason", "unshared_error", *PURPOSE_WORDS)

# Fields that came later, hashed only where they are set: a prompt from before keeps its columns and its answers.
_HASHED_IF_SET = ("answer_first", "coded", "fenced", "listed", "parts", "scale_words", "verdict_words", "windows")

# The place of labeled examples in a user message, and the sentences around them.
_EXAMPLES_PLACE = "{{examples}}\n\n"
_QUESTION = "No more cases. What you are asked about follows.\n\n"
_EXAMPLES = "Some cases that people have decided, to show what the answers mean. They are not what you are asked about."


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """A prompt of the pool.

    Parameters
    ----------
    id : str
        Lower-case letters, digits, dots, hyphens and underscores; the name of its TOML file.
    version : str
        The author's own count of revisions.
    family : str
        Prompts that share a strategy.
    follows : str
        The paper and appendix whose strategy it follows; the wording is its own.
    system : str
        The system message; none is sent where it is empty.
    user : str
        The user message, with ``{{source}}``, ``{{claim}}`` and ``{{verdict}}`` where these go, and, if wanted,
        ``{{question}}`` in a paragraph of its own, which is left out where an example has no question.
    labels : mapping of str to {1, 0, -1}
        The answers of a prompt of kind verdict: consistent, inconsistent, abstains. The first label of each
        polarity is the one the judge is told of; the others are spellings that are understood too.
    kind : {'verdict', 'score'}, default='verdict'
        Whether it asks for one of the labels, or for a score on a scale.
    output : {'text', 'json', 'xml'}, default='text'
        Whether the answer stands on a line, in an object, or in an element.
    reasons_first : bool
        Whether the judge is asked to reason before it answers.
    document_first : bool, default=False
        Whether the document leads the user message, so that a prefix cache serves all prompts about it.
    parameters : mapping, default={}
        Sent along with the request: temperature, max_tokens and whatever else the endpoint knows.
    scale : (float, float), optional
        The lowest and the highest score of a prompt of kind score.
    threshold : float in [0, 1], default=0.5
        A score counts as a vote of 1 from this point of the scale (0 lowest, 1 highest) until a threshold has
        been learned.
    threshold_reason : str, default=""
        Why the vote is 1 from there on: which grade the prompt gives to the mildest inconsistent claim.
    parts : tuple of str, default=()
        What the judge lists before its verdict, one list a name: keys of a JSON reply, elements of an XML reply with
        one entry a line. The entries become the judgment's evidence, as ``<name>: <entry>``.
    fenced : bool, default=True
        Whether source and claim stand between tags with a code. False for the prompts that papers print, which have
        neither tags nor ``{{verdict}}``: a document can then speak to the judge.
    windows : {'any', 'all'}, default='any'
        How the votes on the windows of a long source are combined: 1 if the judge finds the claim in any window, or
        1 if it finds nothing against the claim in all of them; see :func:`combine_windows`.
    strictness : {'even', 'lenient', 'strict'}, optional
        Which way it leans on doubtful claims: to neither, to consistent (lenient), or to inconsistent (strict).
    unshared_error : str, default=""
        The error of other judges that the prompt is meant not to share, in one line.
    expected_tpr, expected_tnr : {'higher', 'lower', 'same'}, optional
        How its true positive and true negative rates should stand to those of ``deep-strict-steps``.
    coded : bool, default=False
        Whether every answer carries a code of its question, so that nothing else can pass for it: neither a line of the
        document nor a reply to another claim. Another version, with a hash of its own.

    Raises
    ------
    InputError
        A field breaks a rule that docs/prompt-files.md states.

    Examples
    --------
    >>> from deep.prompt_pool import Prompt
    >>> prompt = Prompt(
    ...     id="short", version="1", family="mine", follows="own design", reasons_first=False,
    ...     system="Compare the claim with the source.",
    ...     user="{{source}} {{claim}} Write {{verdict}} and then TRUE or FALSE.",
    ...     labels={"TRUE": 1, "FALSE": 0}, document_first=True,
    ... )
    >>> prompt.parse("VERDICT: **false**").vote
    0
    >>> prompt.parse("It may be TRUE.").reason
    'unparsable'
    """

    id: str
    version: str
    family: str
    follows: str
    user: str
    reasons_first: bool
    system: str = ""
    labels: Mapping[str, int] = field(default_factory=dict, hash=False)
    kind: Kind = "verdict"
    output: Output = "text"
    document_first: bool = False
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)
    scale: tuple[float, float] | None = None
    threshold: float = 0.5
    threshold_reason: str = ""
    parts: tuple[str, ...] = ()
    fenced: bool = True
    windows: Rule = "any"
    strictness: str = ""
    unshared_error: str = ""
    expected_tpr: str = ""
    expected_tnr: str = ""
    answer_first: bool = False
    verdict_words: Mapping[str, int] = field(default_factory=dict, hash=False)
    scale_words: Mapping[str, float] = field(default_factory=dict, hash=False)
    listed: bool = False
    coded: bool = False

    def __post_init__(self) -> None:
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        for name, value in values.items():
            if isinstance(value, Mapping):
                values[name] = dict(value)
            elif isinstance(value, str):
                # A checkout on Windows must not make another version of a prompt.
                values[name] = value.replace("\r\n", "\n").replace("\r", "\n")
        problems = find_problems(values)
        if problems:
            raise InputError(f"{problems[0]} (prompt {self.id!r})")
        if values["verdict_words"] and not values["labels"]:
            values["labels"] = values["verdict_words"]
        if isinstance(values["scale"], dict):
            values["scale_words"] = values["scale"]
            values["scale"] = min(values["scale_words"].values()), max(values["scale_words"].values())
        values["scale"] = None if values["scale"] is None else tuple(values["scale"])
        values["parts"] = tuple(self.parts)
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @cached_property
    def hash(self) -> str:
        """Return the identity of the prompt: SHA-256 of all that decides what is asked and how it is read.

        64 hexadecimal digits, the same on every platform; `family`, `follows`, `threshold_reason` and what the prompt
        says of its purpose are left out.
        """
        content = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _NOT_HASHED}
        # As pairs, for their order counts: the first label of a vote is the one that is asked for.
        content["labels"] = list(self.labels.items())
        content["rendering"] = RENDERING
        defaults = {f.name: f.default for f in fields(self)}
        # A field that a prompt does not use must not change its hash: its columns, and answers that were paid for,
        # stay.
        for name in _HASHED_IF_SET:
            if content[name] == defaults[name] or content[name] == {}:
                del content[name]
        return sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    @property
    def takes_examples(self) -> bool:
        """Whether the prompt has a place of its own for labeled examples, which stays empty where there are none."""
        return _EXAMPLES_PLACE in self.user

    @cached_property
    def shows_question(self) -> bool:
        """Whether the prompt has a place for the question that the claim answers."""
        return "question" in PLACEHOLDER.findall(self.user)

    def render(
        self, source: str, claim: str, shots: Sequence[Example] = (), *, question: str | None = None
    ) -> list[dict[str, str]]:
        """Return the chat messages that ask about one claim.

        Parameters
        ----------
        source, claim : str
            Fenced by tags whose code stands in neither of them, unless the prompt is one without; nothing inside them
            is a placeholder.
        shots : sequence of Example, optional
            Labeled examples, shown with the prompt's own labels where ``{{examples}}`` stands, or else before the
            source and the claim.
        question : str, optional
            The question that the claim answers. A prompt without ``{{question}}`` does not show it, and one with it
            is shown without that paragraph where there is none.

        Returns
        -------
        list of dict
            Messages with `role` and `content`: the system message, where there is one, then the user's.

        Raises
        ------
        InputError
            `source` or `claim` is not a string, or a prompt of kind score is to show labeled examples.
        """
        material = self._material(source, claim, question)
        values = {
            **{name: material.fenced(name) for name in ("source", "claim", "question")},
            "verdict": self._form.marker(self._form.tag(material)),
            "examples": self._shown(shots),
        }
        user = self._with_place_for(shots)
        if material.question is None:
            # The paragraph that shows the question goes with it.
            paragraphs = user.split("\n\n")
            user = "\n\n".join(part for part in paragraphs if "question" not in PLACEHOLDER.findall(part))
        messages = [("system", self.system), ("user", user)]
        return [{"role": role, "content": render(text, values).strip()} for role, text in messages if text.strip()]

    def render_repair(
        self, source: str, claim: str, reply: str, shots: Sequence[Example] = (), *, question: str | None = None
    ) -> list[dict[str, str]]:
        """Return the chat messages that quote a reply and ask for the answer that it does not give.

        They are those of :meth:`render`, the user's message with more at its end, so that a prefix cache serves them
        and no server has to take two messages of the user in a row.

        Examples
        --------
        >>> from deep.prompt_pool import load_prompt
        >>> asked = load_prompt("yes-no").render_repair("It rained.", "It was wet.", "Probably.")
        >>> print(asked[-1]["content"][-77:])
        It reads exactly "VERDICT: YES" or "VERDICT: NO", and no word comes after it.
        """
        *before, last = self.render(source, claim, shots, question=question)
        more = repair_text(self._form, self._material(source, claim, question), reply).rstrip()
        return [*before, {**last, "content": f"{last['content']}\n{more}"}]

    @property
    def is_direct(self) -> bool:
        """Whether the reply is to be the verdict and nothing else, so that it can be constrained to the labels.

        A prompt of somebody else's, without fences, is asked as it is.
        """
        alone = self.kind == "verdict" and not (self.reasons_first or self.parts)
        return alone and self.output != "json" and self.fenced

    def choice(
        self, source: str, claim: str, constrain: str, *, question: str | None = None, again: bool = False
    ) -> Choice | None:
        """Return the constraint of a reply that is the verdict alone; None for others, or with `constrain` ``none``.

        Parameters
        ----------
        source, claim : str
            The texts of the example, on which the code of its answer depends.
        constrain : {'none', 'schema', 'vllm'}
            Whether and how the server is held to the labels; see `how` of :func:`choice_of`.
        question : str, optional
            The question that the claim answers, where there is one.
        again : bool, default=False
            For the repair turn.
        """
        if not self.is_direct:
            return None
        return choice_of(self._form, self._form.tag(self._material(source, claim, question), again=again), constrain)

    def check_few_shot(self) -> None:
        """Raise where the prompt cannot show labeled examples: labels are no grades."""
        if self.kind == "score":
            raise InputError(f"`few_shot` must go with prompts of kind verdict. Got {self.id!r}, which gives a score.")

    def _with_place_for(self, shots: Sequence[Example]) -> str:
        """Return the user message with a place for labeled examples exactly where there are any."""
        if not shots or self.takes_examples:
            return self.user if shots else self.user.replace(_EXAMPLES_PLACE, "")
        places = {match[1]: match.start() for match in PLACEHOLDER.finditer(self.user)}
        starts = [self.user.rfind("\n\n", 0, places["question"]) + 2] if self.shows_question else []
        start = min(places["source"], places["claim"], *starts)
        return f"{self.user[:start]}{_EXAMPLES_PLACE}{_QUESTION}{self.user[start:]}"

    def _shown(self, shots: Sequence[Example]) -> str:
        """Return labeled examples as the judge sees them."""
        if not shots:
            return ""
        self.check_few_shot()
        label_of = {self.labels[label]: label for label in reversed(first_labels(self.labels))}
        cases = list[str]()
        for number, shot in enumerate(shots, start=1):
            material, label = Material(shot.source, shot.claim), label_of[shot.label or 0]
            cases.append(
                f"Case {number}, which was decided:\n\n{material.fenced('source')}\n\n{material.fenced('claim')}\n\n"
                f"People who read case {number} with care chose {label} for it."
            )
        return "\n\n".join([_EXAMPLES, *cases])

    @cached_property
    def told_labels(self) -> list[str]:
        """The labels that the judge is told to choose from: those of the lines that it is shown, and one a polarity.

        Examples
        --------
        >>> from deep.prompt_pool import load_prompt
        >>> load_prompt("diverse-entailment").told_labels
        ['ENTAILMENT', 'NEUTRAL', 'CONTRADICTION']
        """
        form = {"text": '"{{verdict}} %s"', "xml": "<{{verdict}}>%s</", "json": '"{{verdict}}": "%s"'}[self.output]
        first = first_labels(self.labels)
        return [label for label in self.labels if label in first or form % label in self.user]

    def schema(self, source: str = "", claim: str = "", question: str | None = None) -> dict[str, Any] | None:
        """Return the JSON schema of the reply, reasoning before the answer; None where the output is not JSON.

        It depends on what is asked about where the prompt is `coded`: the key of the answer holds the code.
        """
        if self.output != "json":
            return None
        answer = {"type": "number"} if self.kind == "score" else {"type": "string", "enum": self.told_labels}
        lists = {"type": "array", "items": {"type": "string"}}
        properties: dict[str, Any] = dict.fromkeys(self.parts, lists)
        if self.reasons_first:
            properties["reasoning"] = {"type": "string"}
        properties[self._form.key(self._form.tag(self._material(source, claim, question)))] = answer
        return object_schema(properties)

    def parse(
        self,
        text: str | None,
        *,
        finish_reason: str | None = None,
        refusal: str | None = None,
        source: str | None = None,
        claim: str | None = None,
        question: str | None = None,
        logprobs: Logprobs | None = None,
    ) -> Judgment:
        """Read a reply. Never raises, whatever it holds.

        Parameters
        ----------
        text : str or None
            The reply as it came.
        finish_reason : str, optional
            Why the judge stopped, as the endpoint says it.
        refusal : str, optional
            What the endpoint sent in place of an answer.
        source, claim, question : str, optional
            What was asked about. With them an answer that was copied out of the document is told from the
            judge's own; pass them wherever they are at hand.
        logprobs : sequence of mapping, optional
            The reply's tokens with their most likely alternatives, as chat completions give them.

        Returns
        -------
        Judgment
            The vote, or why there is none, with the reasoning before it and the passages that it quotes, or the
            entries of `parts` where the prompt asks for them. `score`
            is, for a prompt of kind score, the score scaled to [0, 1], of which `threshold` makes the vote; for
            a verdict, P(consistent) at its first token where `logprobs` tell, else None.
        """
        material = None if source is None or claim is None else self._material(source, claim, question)
        return self._form.judge(
            text, finish_reason=finish_reason, refusal=refusal, material=material, logprobs=logprobs
        )

    def verdicts_in(self, text: str) -> set[float]:
        """Return the values of the answers and statements of a reply, also where they contradict one another."""
        return self._form.verdicts_in(text)

    def entries(self, text: str) -> list[int] | None:
        """Return the polarity of each entry of a reply that lists them; None where that is not clear."""
        return self._form.entries(text)

    def _material(self, source: str, claim: str, question: str | None) -> Material:
        shown = question if self.shows_question and (question or "").strip() else None
        return Material(source, claim, shown, bare=not self.fenced, coded=self.coded)

    @cached_property
    def _form(self) -> AnswerForm:
        own = {one.name: getattr(self, one.name) for one in fields(AnswerForm) if one.name != "told"}
        return AnswerForm(**own | {"labels": {**self.labels, **self.verdict_words}}, told=tuple(self.told_labels))


# The types that a value may have in a file, by that of the field of a prompt.
FILE_TYPES = {float: (float, int), Mapping: (dict,), tuple: (list, tuple), Literal: (str,)}

FIELDS = {name: FILE_TYPES.get(get_origin(hint) or hint, (hint,)) for name, hint in get_type_hints(Prompt).items()}
FIELDS["scale"] = (list, tuple, dict, NoneType)  # its two ends, or a number for each word
REQUIRED = {one.name for one in fields(Prompt) if one.default is one.default_factory is MISSING}

_PART = re.compile(r"[a-z][a-z_]{0,39}")
_IDENTIFIER = re.compile(r"[a-z0-9][a-z0-9._-]{0,79}")

# Fields of a request that the call layer sets, so that no prompt file may.
_OWN_FIELDS = ("messages", "model", "n", "response_format", "stream", "logprobs", "top_logprobs")


def find_problems(values: Mapping[str, Any]) -> list[str]:
    """Return every rule that the fields of a prompt break, as lines of an error message; empty where it is sound."""
    # The other rules rely on the types of fields.
    problems = list(_shape(values))
    if problems:
        return problems
    rules = (_names, _placeholders, _order, _labels, _scale, _parameters, _parts)
    return [problem for rule in rules for problem in rule(values)]


def _shape(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each field that is unknown, missing or of the wrong type."""
    for name in values.keys() - FIELDS.keys():
        yield f"`{name}` must be one of {', '.join(sorted(FIELDS))}. Got an unknown field. Remove it."
    for name, types in FIELDS.items():
        if name not in values:
            if name in REQUIRED:
                yield f"`{name}` must be given. Got none."
        elif not isinstance(values[name], types) or (isinstance(values[name], bool) and bool not in types):
            yield f"`{name}` must be a {types[0].__name__}. Got {values[name]!r}."
    closed = {"kind": get_args(Kind), "output": get_args(Output), "windows": get_args(Rule)}
    closed |= {name: words for name, words in PURPOSE_WORDS.items() if values.get(name)}
    for name, options in closed.items():
        if name in values and values[name] not in options:
            yield f"`{name}` must be one of {', '.join(options)}. Got {values[name]!r}."


def _names(values: Mapping[str, Any]) -> Iterator[str]:
    if not _IDENTIFIER.fullmatch(values["id"]):
        yield (
            "`id` must be 1 to 80 lower-case letters, digits, dots, hyphens and underscores, a letter or digit first. "
            f"Got {values['id']!r}."
        )
    for name in ("version", "family", "follows"):
        if not values[name].strip():
            yield f"`{name}` must say something. Got {values[name]!r}."


def _placeholders(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each placeholder that is missing, stands twice or in the wrong message."""
    in_system = PLACEHOLDER.findall(values.get("system", ""))
    in_user = PLACEHOLDER.findall(values["user"])
    for name in ("source", "claim"):
        if in_user.count(name) != 1 or name in in_system:
            yield f"`user` must hold {{{{{name}}}}} exactly once, and `system` never."
    if "question" in in_system or in_user.count("question") > 1:
        yield "`user` must hold {{question}} at most once, and `system` never."
    by_paragraph = map(PLACEHOLDER.findall, values["user"].split("\n\n"))
    if any("question" in result and len(result) > 1 for result in by_paragraph):
        yield "`user` must hold {{question}} alone in a paragraph, which is left out without a question."
    if in_user.count("examples") != values["user"].count("{{examples}}\n\n") or in_user.count("examples") > 1:
        yield "`user` must hold {{examples}} at most once, alone in a paragraph."
    if "examples" in in_system:
        yield "`system` must not hold {{examples}}, which belongs to `user`. Got it."
    for name in sorted({*in_system, *in_user} - {"source", "claim", "examples", "question", "verdict"}):
        allowed = "claim, examples, question, source and verdict"
        yield f"`user` must hold no placeholder but {allowed}. Got {{{{{name}}}}}."
    if "verdict" not in in_system + in_user and values.get("fenced", True):
        yield "`user` must hold {{verdict}} where it tells the judge how to write the answer. Got none."
    if values.get("coded", False) and (values.get("listed", False) or not values.get("fenced", True)):
        yield "`coded` must be false where `fenced` is false or `listed` is true: such an answer has no marker."


def _order(values: Mapping[str, Any]) -> Iterator[str]:
    leads = values["user"].lstrip().startswith("{{source}}")
    if values.get("document_first", False) and not leads:
        yield "`user` must begin with {{source}} where `document_first` is true, for prompts to share the prefix."
    if leads and not values.get("document_first", False):
        yield "`document_first` must be true where `user` begins with {{source}}. Got False."


def _labels(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each fault of the labels of a verdict."""
    words = values.get("verdict_words", {})
    labels = {**values.get("labels", {}), **words}
    if values.get("kind", "verdict") == "score":
        if labels:
            yield f"`labels` must be empty for a prompt of kind score. Got {', '.join(labels)}."
        return
    for label, polarity in labels.items():
        if isinstance(polarity, bool) or polarity not in (1, 0, -1):
            yield f"`labels` must map to 1, 0 or -1 (abstains). Got {polarity!r} for {label!r}."
    for polarity, meaning in ((1, "consistent"), (0, "inconsistent")):
        if polarity not in labels.values():
            yield f"`labels` must have a label for {polarity} ({meaning}). Got none."
    plain = [normalise_label(label) for label in labels]
    if "" in plain or len(set(plain)) < len(plain):
        listed = ", ".join(map(repr, labels))
        yield f"`labels` must differ by more than case, punctuation and white space. Got {listed}."
    text = values.get("system", "") + values["user"]
    for label in first_labels(values.get("labels") or values.get("verdict_words", {})):
        if label not in text:
            yield f"`user` must tell the judge of each label. Got none of {label!r}."


def first_labels(labels: Mapping[str, int]) -> list[str]:
    """Return the first label of each polarity, in the order declared; the others are other spellings."""
    first: dict[int, str] = {}
    for label, polarity in labels.items():
        first.setdefault(polarity, label)
    return list(first.values())


def _scale(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each fault of the scale of a score and its threshold."""
    scale, threshold = values.get("scale"), values.get("threshold", 0.5)
    if (scale is not None) != (values.get("kind", "verdict") == "score"):
        yield f"`scale` must be given exactly where `kind` is score, as [lowest, highest]. Got {scale!r}."
    elif scale is not None:
        ends = _ends(scale)
        numbers = [x for x in ends if isinstance(x, int | float) and not isinstance(x, bool)]
        if not (len(ends) == len(numbers) == 2 and float("-inf") < numbers[0] < numbers[1] < float("inf")):
            yield f"`scale` must be two numbers, the lower one first, or a number for each word. Got {scale!r}."
    if scale is None and values.get("threshold_reason", ""):
        yield f"`threshold_reason` must be empty where `kind` is verdict. Got {values['threshold_reason']!r}."
    if not 0 <= threshold <= 1:
        yield f"`threshold` must lie in [0, 1], where 0 is the lowest score and 1 the highest. Got {threshold!r}."


def _parts(values: Mapping[str, Any]) -> Iterator[str]:
    parts = values.get("parts", ())
    if parts and values.get("output", "text") == "text":
        yield "`parts` must be empty where `output` is text, which has no place for them."
    if not all(isinstance(part, str) and _PART.fullmatch(part) for part in parts) or len(set(parts)) < len(parts):
        yield f"`parts` must be different names of lower-case letters and underscores. Got {list(parts)!r}."
    elif set(parts) & {"reasoning", "score", "verdict"}:
        yield f"`parts` must not be named reasoning, score or verdict, which are there already. Got {list(parts)!r}."
    for part in parts:
        if str(part) not in values["user"]:
            yield f"`user` must tell the judge of each of `parts`. Got none of {part!r}."


def _ends(scale: Any) -> Any:
    """Return the lowest and the highest score of a scale in words; one in numbers as it is."""
    if not isinstance(scale, dict):
        return scale
    numbers = [number for number in scale.values() if isinstance(number, int | float)]
    return [min(numbers), max(numbers)] if numbers and len(numbers) == len(scale) else []


def _parameters(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each parameter of the request that a prompt may not set, or not to this value."""
    parameters = values.get("parameters", {})
    for name in sorted(parameters.keys() & set(_OWN_FIELDS)):
        yield f"`parameters` must leave out {', '.join(sorted(_OWN_FIELDS))}, which the call layer sets. Got {name!r}."
    temperature, tokens = parameters.get("temperature", 0), parameters.get("max_tokens", 1)
    if isinstance(temperature, bool) or not isinstance(temperature, int | float) or not 0 <= temperature <= 2:
        yield f"`parameters.temperature` must lie in [0, 2]. Got {temperature!r}."
    if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 1:
        yield f"`parameters.max_tokens` must be a whole number from 1. Got {tokens!r}."
    try:
        json.dumps(parameters, allow_nan=False)
    except (TypeError, ValueError):
        yield f"`parameters` must be numbers, strings, booleans, lists and tables. Got {parameters!r}."

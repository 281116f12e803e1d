# ruff: noqa: RUF001
"""Endings of replies in twelve forms and six languages, in words of our own, and what makes of each no verdict."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple


class Language(NamedTuple):
    """The labels of a language, and its words for a claim that has them or not.

    `labels` are what the prompt asks for; `says` gives sentences with ``{label}``; `doubts` are those of the twins.
    """

    labels: Mapping[str, int]
    answer: str
    says: tuple[str, ...]
    reason: str
    doubts: tuple[str, ...]


LANGUAGES = {
    "english": Language(
        {"SUPPORTED": 1, "NOT SUPPORTED": 0},
        "Answer",
        ("The claim is {label}.", "Therefore, the claim is {label}.", "Based on the text, the statement is {label}."),
        "The text gives the same count.",
        ("The claim may be {label}.", "Is the claim {label}?", "Some would say that the claim is {label}."),
    ),
    "german": Language(
        {"belegt": 1, "nicht belegt": 0},
        "Antwort",
        ("Die Aussage ist {label}.", "Daher ist die Aussage {label}.", "Die Antwort lautet {label}."),
        "Der Text nennt dieselbe Zahl.",
        ("Die Aussage ist vielleicht {label}.", "Ist die Aussage {label}?", "Die Aussage könnte {label} sein."),
    ),
    "french": Language(
        {"confirmée": 1, "non confirmée": 0},
        "Réponse",
        ("L'affirmation est {label}.", "Donc, l'affirmation est {label}.", "La réponse est {label}."),
        "Le texte donne le même nombre.",
        ("L'affirmation est peut-être {label}.", "L'affirmation est-elle {label} ?", "Elle pourrait être {label}."),
    ),
    "spanish": Language(
        {"respaldada": 1, "no respaldada": 0},
        "Respuesta",
        ("La afirmación es {label}.", "Por lo tanto, la afirmación es {label}.", "La respuesta es {label}."),
        "El texto da el mismo número.",
        ("La afirmación quizás es {label}.", "¿Es {label}?", "Tal vez {label}."),
    ),
    "russian": Language(
        {"верно": 1, "неверно": 0},
        "Ответ",
        ("Ответ: {label}.", "Вывод: {label}.", "Вердикт: {label}."),
        "В тексте то же число.",
        ("Может быть, {label}?", "Но {label} ли это?", "Возможно {label} или нет."),
    ),
    "chinese": Language(
        {"属实": 1, "不属实": 0},
        "答案",
        ("该说法{label}。", "因此，该说法{label}。", "结论：{label}。"),
        "原文的数字相同。",
        ("该说法可能{label}。", "该说法{label}吗？", "也许{label}？"),
    ),
}

FORMS = (
    "{label}",
    "{answer}: {label}",
    "**{answer}:** {label}",
    "{label}\n\n{reason}",
    "{reason}\n\n{answer}: {label}",
    "{reason}\n\n**{label}**",
    "{reason}\n{say}",
    "{say}\n\n{reason}",
    "<answer>{label}</answer>",
    '{{"verdict": "{label}"}}',
    "{reason}\n\n\\boxed{{{label}}}",
    "<think>{reason}</think>\n{say}",
)
"""Twelve forms; those with `say` go with each of a language's sentences."""


class Ending(NamedTuple):
    """A reply, what it says, and its language and form."""

    language: str
    form: str
    text: str
    vote: int


def endings() -> Iterator[Ending]:
    """Yield every form with every label, sentence and spelling of a language."""
    for name, language in LANGUAGES.items():
        for label, vote in language.labels.items():
            for form in FORMS:
                for say in language.says if "{say}" in form else language.says[:1]:
                    for spelled in dict.fromkeys((label, label.upper(), label.capitalize())):
                        message = say.format(label=spelled)
                        words = {"label": spelled, "answer": language.answer, "reason": language.reason, "say": message}
                        yield Ending(name, form, form.format(**words), vote)


def twins(ending: Ending) -> Iterator[str]:
    """Yield replies that hold the words of an ending and no verdict: a hedge, a question, a quotation, two verdicts."""
    language = LANGUAGES[ending.language]
    label = next(label for label, vote in language.labels.items() if vote == ending.vote)
    other = next(label for label, vote in language.labels.items() if vote != ending.vote)
    yield from (doubt.format(label=label) for doubt in language.doubts)
    yield f"{label} / {other}"
    yield f"{language.answer}: {label}\n{language.answer}: {other}"
    yield f"{label}\n\n{other}"
    yield f"> {language.answer}: {label}"
    yield f"<answer>{label}</answer>\n<answer>{other}</answer>"

"""Replies as small models write them, generated: every form with every label, and forms that give no answer."""

import json
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

SOURCE = "The harbour office counted 14 ships on Monday. Two of them were ferries, and the wind was calm all day."
CLAIM = "Fourteen ships were counted on Monday."

REASONING = (
    "",
    "The source names 14 ships and so does the claim.\n\n",
    "1. Count: 14 in the source.\n2. Day: Monday in both.\n\n",
    "Zuerst die Zahl: 14. Dann der Tag: Montag.\n\n",
    "\u6570\u91cf\u662f14\uff0c\u65e5\u671f\u662f\u661f\u671f\u4e00\u3002\n\n",
    "<think>\nAt first I would say {other}.\nVERDICT: {other}\n</think>\n\n",
)
"""What may stand before the answer."""

ENDS = ("", "\n", ".", "</s>", "<|im_end|>", "<|eot_id|>", "<|endoftext|>", "<end_of_turn>", " \n\n```")
"""What may stand behind it and means nothing."""

LINES = (
    "VERDICT: {label}",
    "Verdict: {label}",
    "verdict: {lower}",
    "**VERDICT: {label}**",
    "**Verdict:** {title}",
    "**Verdict**: {label}",
    "**Verdict**\n{label}",
    "## Verdict\n\n**{label}**",
    "### Final Verdict: {label}",
    "- VERDICT: {label}",
    "* **Verdict:** {label}",
    "\u2022 VERDICT: {label}",
    "3. VERDICT: {label}",
    "VERDICT\uff1a{label}",
    "VERDICT - {label}",
    "VERDICT \u2013 {label}",
    "VERDICT = {label}",
    "VERDICT -> {label}",
    "VERDICT {label}",
    "VERDICT: '{label}'",
    'VERDICT: "{label}"',
    "VERDICT: `{label}`",
    "VERDICT: [{label}]",
    "VERDICT: ({label})",
    "VERDICT: *{label}*",
    "VERDICT:{label}",
    "VERDICT:\n{label}",
    "[VERDICT: {label}]",
    '"VERDICT: {label}"',
    "<b>VERDICT: {label}</b>",
    "```\nVERDICT: {label}\n```",
    "VERDICT: {label},",
    "VERDICT: {label}!",
    "VERDICT: {label};",
    "VERDICT: {tick} {label}",
    "{tick} VERDICT: {label}",
    "Answer: {label}",
    "ANSWER: {label}",
    "Final answer: {label}",
    "FINAL ANSWER - {label}",
    "**Final Answer:** {label}",
    "Final_answer: {label}",
    "My final answer is {label}",
    "The answer is {label}",
    "The verdict is: {label}",
    "My verdict is {label}",
    "Therefore, the final verdict is {label}",
    "So the answer is: **{label}**",
    "Conclusion: {label}",
    "Decision: {label}",
    "Label: {label}",
    "Judgment: {label}",
    "Final judgement: {label}",
    "Result: {label}",
    "Urteil: {label}",
    "Respuesta: {label}",
    "R\u00e9ponse : {label}",
    "\u7ed3\u8bba\uff1a{label}",
    "VERDICT: The claim is {label}",
    "VERDICT: The statement is therefore {label}",
    "VERDICT: I conclude that the claim is {label}",
    "Verdict: the answer is {label}",
    "<verdict>{label}</verdict>",
    "<Verdict>\n{label}\n</Verdict>",
    "<answer>{label}</answer>",
    "<answer>VERDICT: {label}</answer>",
    "\\boxed{{{label}}}",
    "$\\boxed{{\\text{{{label}}}}}$",
    "The final answer is $\\boxed{{{label}}}$",
    '{{"verdict": "{label}"}}',
    '{{"Verdict": "{lower}"}}',
    '{{"verdict": "{label}",}}',
    "{{'verdict': '{label}'}}",
    "{{verdict: {label}}}",
    '{{"answer": "{label}"}}',
    '```json\n{{"verdict": "{label}"}}\n```',
    '```json\n{{\n  "reasoning": "All of it was checked.",\n  "verdict": "{label}"\n}}\n```',
    '{{"reasoning": "It says "14" there.", "verdict": "{label}"}}',
    "{{'reasoning': 'the count is there', 'verdict': '{label}'}}",
    'Here is the object: {{"verdict": "{label}"}}',
    "<|channel|>final<|message|>VERDICT: {label}",
    "VERDICT: {label}\nVERDICT: {label}",
    "VERDICT: {label}\n\nFinal answer: {label}",
)
"""Forms of the answer; each goes with any label."""

ALONE = (
    "{label}",
    "**{label}**",
    "{lower}",
    "'{label}'",
    "`{label}`",
    "```\n{label}\n```",
    "[{label}]",
    "{tick} {label}",
)
"""Forms of a reply that is nothing else, or of its last line."""

REASONS = {
    1: (
        "because every detail is in the source",
        "since the source gives the same count and day",
        "The source states this in its first sentence.",
        "all facts match",
        "Reason: the number and the day agree with the source.",
        "No contradiction was found.",
    ),
    0: (
        "because the source says 14",
        "since nobody says so in the source",
        "The source says 14, but the claim says 15.",
        "wrong number",
        "Reason: the day is a different one.",
        "The ferry is not mentioned anywhere.",
    ),
}
"""Reasons behind a verdict, by what the verdict stands for."""

WITH_REASON = (
    "VERDICT: {label} ({reason})",
    "VERDICT: {label} - {reason}",
    "VERDICT: {label} \u2014 {reason}",
    "VERDICT: {label}, {reason}",
    "VERDICT: {label}. {reason}",
    "VERDICT: {label}\n{reason}",
    "VERDICT: {label}\n\n{reason}",
    "**VERDICT: {label}**\n\n*{reason}*",
    "VERDICT: {label}\uff08{reason}\uff09",
    "VERDICT: The claim is {label}. {reason}",
    "Answer: {label}. {reason}",
    "{label}. {reason}",
    "{label}\n\n{reason}",
    "{label} - {reason}",
    '{{"verdict": "{label} - {reason}"}}',
    '{{"verdict": "{label}"}}\n\n{reason}',
    "<verdict>{label}</verdict>\n{reason}",
)

DOUBTFUL = (
    "VERDICT: {label} or {other}",
    "VERDICT: {label}/{other}",
    "VERDICT: {label}, {other}",
    "VERDICT: {other}; {label}",
    "VERDICT: either {label} or {other}",
    "VERDICT: {label}?",
    "VERDICT: maybe {label}",
    "VERDICT: probably {label}",
    "VERDICT: {label}, I think",
    "VERDICT: {label} (not sure)",
    "VERDICT: {label}, but I may be wrong",
    "VERDICT: {label}, more or less",
    "VERDICT: {label} (mostly)",
    "VERDICT: partially {label}",
    "VERDICT: {label} in part",
    "VERDICT: {label}, if one is generous",
    "VERDICT: {label} to some extent",
    "VERDICT: {label} for the most part",
    "VERDICT: {label}\nWait, that is {other}.",
    "VERDICT: {label}\nOn reflection it may be {other}.",
    "VERDICT: {label}\nVERDICT: {other}",
    "VERDICT: {label}\nFinal answer: {other}",
    "Answer: {label}\n\nAnswer: {other}",
    "{label}\n{other}",
    "{label}\n\n{other}",
    "\\boxed{{{label}}}\n\\boxed{{{other}}}",
    "VERDICT: ~~{label}~~",
    '{{"verdict": "{label} or {other}"}}',
    '{{"verdict": "{label}"}}\n{{"verdict": "{other}"}}',
    '{{"verdict": "{label}", "verdict": "{other}"}}',
    '{{"verdict": ["{label}", "{other}"]}}',
    "<verdict>{label}|{other}</verdict>",
    "<verdict>{label}</verdict><verdict>{other}</verdict>",
    "VERDICT: [{label} / {other}]",
    "The answer depends: {label} for the count, {other} for the day.",
    "Some would say {label}, others {other}.",
    "It cannot be said to be {label}.",
    "VERDICT: far from {label}",
    "VERDICT: never {label}",
    "VERDICT: hardly {label}",
    "Is it {label}?",
    "Was it counted?\n{label}",
    "Was it counted?\nAnswer: {label}",
    "The source could be read as {label}",
    "<think>\nVERDICT: {label}",
    "> VERDICT: {label}",
    'He wrote "VERDICT: {label}"',
    "VERDICT: {tick} {other}",
    "VERDICT: \u00ac{label}",
    "VERDICT: {label} vielleicht",
    "VERDICT: {label}, aber eher {other}",
    "VERDICT:",
    "VERDICT: unclear",
    "VERDICT: 42",
    "",
    "   \n",
    "...",
    "I need the rest of the source first.",
)
"""Forms that say nothing, both, or not for sure; each goes with any label."""

REFUSALS = (
    "I'm sorry, but I can't help with that.",
    "I cannot assist with this request.",
    "I am unable to provide an answer to this.",
    "As a language model I must decline.",
    "We are not able to process this content.",
    "Sorry, this goes against my guidelines.",
    "<think>\nIs this allowed?\n</think>\nI won't answer that.",
)

CUT_OFF = (
    "1. The claim says that 14",
    "VERDICT:",
    "VERDICT",
    "So it is.\nVERDICT: NOT",
    '{"verdict": "',
    "<verdict>",
    "<think>\nWell",
    "VERDICT: NOT SUPPORTED because the",
)

ECHOED = (
    "{label}",
    "The clerk wrote it down.\n{label}",
    "Answer: {label}",
    "Final answer: {label}.",
    "The answer is {label}.",
    "My verdict is {label}",
    "VERDICT: {label}",
    "VERDICT - {label}",
    "Verdict {label}",
    "**Verdict**\n{label}",
    "The claim is {label}.",
    "Therefore, the claim is {label}",
    "\\boxed{{{label}}}",
    "<answer>{label}</answer>",
    "<verdict>{label}</verdict>",
    '{{"verdict": "{label}"}}',
    "{{'verdict': '{label}'}}",
    '{{"answer": "{label}"}}',
    "{label}. The source says so.",
    "The harbour closed early.\n\n{label}",
    "Label: {label}",
    "\u7ed3\u8bba\uff1a{label}",
    "</think>\n{label}",
    "<|channel|>final<|message|>Answer: {label}",
)
"""Endings of documents that look like an answer."""

QUOTED = (
    "{text}",
    "The source reads:\n\n{text}",
    "The source reads:\n{text}\n",
    "{text}\n\nThat is all it says.",
    "> {text}",
    "```\n{text}\n```",
    "<think>{text}</think>\n{text}",
    '"{text}"',
    "- {text}",
    "**{text}**",
    "Source: {text}",
)


class Reply(NamedTuple):
    """A reply with the form it was made from and the vote that it means; None where it means none."""

    form: str
    text: str
    vote: int | None


def spelled(form: str, label: str, other: str, vote: int, **more: str) -> str:
    """Return a form with its label in it."""
    tick = {1: "\u2705", 0: "\u274c"}[vote]
    return form.format(label=label, other=other, lower=label.lower(), title=label.title(), tick=tick, **more)


def pairs(labels: dict[str, int]) -> Iterator[tuple[str, str, int]]:
    """Yield each label of a vote with the first label of the other vote, and the vote."""
    for label, vote in labels.items():
        if vote != -1:
            yield label, next(other for other, polarity in labels.items() if polarity == 1 - vote), vote


def answers(labels: dict[str, int]) -> Iterator[Reply]:
    """Yield replies that give an answer: each form with each label, each reasoning and each ending."""
    for label, other, vote in pairs(labels):
        for form, before, end in product(LINES + ALONE, REASONING, ENDS):
            fenced = "```" in form or form.startswith(("{{", "<", "Here")) or "oxed" in form
            if not (end.startswith((".", " \n\n```")) and fenced) and not (
                end == "." and form.endswith((",", "!", ";"))
            ):
                text = spelled(before, label, other, vote) + spelled(form, label, other, vote) + end
                yield Reply(form, text, vote)
        for form, reason in product(WITH_REASON, REASONS[vote]):
            escaped = json.dumps(reason)[1:-1] if form.startswith("{{") else reason
            yield Reply(form, spelled(form, label, other, vote, reason=escaped), vote)


def doubtful(labels: dict[str, int]) -> Iterator[Reply]:
    """Yield replies that give no answer, or not a sure one."""
    for label, other, vote in pairs(labels):
        for form, before in product(DOUBTFUL, REASONING[:-1]):
            yield Reply(form, before + spelled(form, label, other, vote), None)


def echoes(labels: dict[str, int]) -> Iterator[tuple[str, Reply]]:
    """Yield documents that end like an answer, with replies that quote them and hold nothing else."""
    for label, other, vote in pairs(labels):
        for form, quote in product(ECHOED, QUOTED):
            for document in (spelled(form, label, other, vote), f"{SOURCE}\n\n{spelled(form, label, other, vote)}"):
                yield document, Reply(f"{form} in {quote}", quote.format(text=document), None)

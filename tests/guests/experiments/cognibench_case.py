"""Two turns of CogniBench in the published layout, and a deterministic LLM whose every mistake is known."""

import json

from deep.experiments.tiered import list_text
from tests.prompt_pool.tiered_script import MARKED, REPLY, label_of, task_of

MILL = "The mill opened in 1871."  # 5 words
COAL = "It burned coal and peat daily."  # 6
LONG = "So it served for long."  # 5
HELLO = "Hello there!"  # 2
LOVED = "Painters came to love the old mill."  # 7
MATTERED = "It mattered a lot."  # 4
NOBODY = "Nobody ever used it at all."  # 6
CORN = "It ground corn."  # 3

VERDICTS = {
    MILL: "faithful",
    COAL: "invented",
    LONG: "irrefutable",
    HELLO: "irrelevant",
    LOVED: "speculative",
    MATTERED: "reliable",
    NOBODY: "misleading",
    CORN: "faithful",
}
TURNS = {"7_en_0": (MILL, COAL, LONG, HELLO), "7_en_1": (LOVED, MATTERED, NOBODY, CORN)}
UNTYPED = "well."
KNOWLEDGE = "A mill opened in 1871 and ground corn for the town."  # 11 words

MISTAKES = {
    ("check", COAL): ["faithful", "faithful", "faithful", "invented", "invented"],
    ("check", NOBODY): ["misleading", "misleading", "misleading", "misleading", "rational"],
    ("check", CORN): ["faithful", "faithful", "faithful", "faithful", "invented"],
    ("grounded", MATTERED): ["ungrounded", "ungrounded", "ungrounded", "grounded", "grounded"],
}
"""What the five samples say where they do not say what is published."""

LISTED = (COAL, MATTERED)
"""What direct prompting finds."""

LISTS = {
    "factual_list": ("faithful", "invented"),
    "factual_hallu_list": ("invented",),
    "cognitive_list": ("misleading", "speculative", "reliable", "irrefutable"),
    "cognitive_hallu_list": ("misleading", "speculative"),
    "misleading_list": ("misleading",),
    "speculative_list": ("speculative",),
    "realiable_list": ("reliable",),
    "unequivocal_list": ("irrefutable",),
    "irrelevant_list": ("irrelevant",),
    "faithfulness_list": ("faithful", "reliable", "irrefutable"),
    "hallu_list": ("invented", "misleading", "speculative"),
}

KEY_LABELS = {
    "faithful": ["faithful"],
    "invented": ["invented"],
    "irrelevant": ["irrelevant"],
    "misleading": [],
    "speculative": ["rational"],
    "reliable": ["rational", "grounded"],
    "irrefutable": ["rational", "grounded", "unequivocal"],
}


def write_case(folder):
    """Write dialogues.json and labels.json."""
    folder.mkdir()
    dialogues, labels, before = [], {}, "\n\n"
    for number, (turn_id, sentences) in enumerate(TURNS.items()):
        turn = f"<user> Question {number}? \n\n<assistant> {' '.join(sentences)}"
        before += f"{turn} \n\n"
        dialogues.append(
            {"id": turn_id, "dialogue": before, "current_turn": turn, "turn_index": number, "reference": KNOWLEDGE}
        )
        keys = {text.casefold(): [KEY_LABELS[VERDICTS[text]], i] for i, text in enumerate(sentences)}
        if number:
            keys[UNTYPED] = [[], len(keys)]
        lists = {name: [t for t in reversed(sentences) if VERDICTS[t] in kept] for name, kept in LISTS.items()}
        labels[turn_id] = {**lists, "sentence_label_dict": keys}
    (folder / "dialogues.json").write_text(json.dumps(dialogues), encoding="utf-8")
    (folder / "labels.json").write_text(json.dumps(labels), encoding="utf-8")
    return folder


def script(asked):
    """Answer as published, but for the mistakes; samples of a question come one after another."""
    reply = REPLY.search(asked.user)[2]
    task = task_of(asked.user)
    if task == "list":
        return list_text([text for text in LISTED if text in reply])

    def tagged(match):
        told = MISTAKES.get((task, match[3]))
        # A sentence that the judge let pass although it is misleading meets no later criterion.
        label = told[asked.times % 5] if told else label_of(VERDICTS[match[3]], task)
        return f"<{label}{match[2]}>{match[3]}</{label}{match[2]}>"

    return MARKED.sub(tagged, reply)

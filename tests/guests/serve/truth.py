"""Which claims of examples/unlabeled.csv are consistent, as a reader of their sources says."""

LETTERS = {
    "ferry": "ace bc ad ad bce ade bc bc",
    "museum": "ac bce ad ace cd ac bce bc",
    "orchard": "ad ad ace bd ab ace bd ade",
    "clinic": "bd ad ac ace bd ad ade bd",
    "club": "ad bd ac ade bd ad ace ad",
}
"""By theme: the consistent claims of each of its eight texts."""

CONSISTENT = frozenset(
    f"{theme}-{number}-{letter}"
    for theme, texts in LETTERS.items()
    for number, letters in enumerate(texts.split(), start=1)
    for letter in letters
)

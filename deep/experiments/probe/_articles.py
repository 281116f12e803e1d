"""The tasks and the style that each article serves, and the split that it is in."""

from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256

from deep.experiments.probe._content import STYLES
from deep.experiments.probe._records import Article, Sample

SPLITS = ("train", "evaluation")

ARTICLES_BY = ("task", "all")
"""Each article serves one task, as in the paper; or every article serves all."""

Dealt = Mapping[str, tuple[str, ...]]
"""Tasks by article."""


def ordered(articles: Sequence[Article], seed: int) -> list[Article]:
    """Return the articles in an order that only their ids and the seed decide."""
    return sorted(articles, key=lambda article: sha256(f"{seed} {article.article_id}".encode()).digest())


def deal_tasks(articles: Sequence[Article], tasks: Sequence[str], by: str, seed: int) -> dict[str, tuple[str, ...]]:
    """Return the tasks that each article serves.

    One with a task of its own serves that. The others take turns in shuffled order, or serve all tasks: where `by`
    is ``all``, and where there are fewer of them than tasks.

    Examples
    --------
    >>> from deep.experiments.probe._articles import deal_tasks
    >>> from deep.experiments.probe._records import Article
    >>> some = [Article("a", "It rained."), Article("b", "It snowed."), Article("c", "It hailed.", "summarization")]
    >>> deal_tasks(some, ["summarization", "question_answering"], "task", 0)
    {'c': ('summarization',), 'b': ('summarization',), 'a': ('question_answering',)}
    """
    free = [article for article in ordered(articles, seed) if article.task is None]
    own = {a.article_id: (a.task,) if a.task in tasks else () for a in articles if a.task is not None}
    shared = by == "all" or len(free) < len(tasks)
    return own | {a.article_id: tuple(tasks) if shared else (tasks[i % len(tasks)],) for i, a in enumerate(free)}


def deal_styles(articles: Sequence[Article], dealt: Dealt, seed: int) -> dict[str, str]:
    """Return the style of each article; they take turns over the shuffled articles that serve style transfer."""
    in_turn = sorted(ordered(articles, seed), key=lambda article: "style_transfer" not in dealt[article.article_id])
    return {article.article_id: STYLES[i % len(STYLES)] for i, article in enumerate(in_turn)}


def split_articles(
    articles: Sequence[Article], dealt: Dealt, samples: Sequence[Sample], *, size: int, share: float, seed: int
) -> dict[str, str]:
    """Return the split of each article.

    Articles that serve the same tasks are taken for evaluation in shuffled order, whole, until there are `size` samples
    of each of these tasks, and no more than `share` of them; of two or more, neither split is empty.
    """
    made = Counter((sample.article_id, sample.task) for sample in samples)
    split = {}
    for tasks in dict.fromkeys(dealt.values()):
        group = [article.article_id for article in ordered(articles, seed) if dealt[article.article_id] == tasks]
        most = min(max(1, round(share * len(group))), max(1, len(group) - 1))
        have: Counter[str] = Counter()
        for i, name in enumerate(group):
            wanted = i < most and any(have[task] < size for task in tasks)
            split[name] = SPLITS[wanted]
            have.update({task: made[name, task] for task in tasks if wanted})
    return split

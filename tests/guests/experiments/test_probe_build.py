"""The builder of the benchmark against a scripted LLM, and what it makes of answers that cannot be used."""

import json
import re
from collections import Counter

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep.datasets import read_examples
from deep.exceptions import InputError
from deep.experiments.probe._content import ARTICLES_BY, Rejected, deal_tasks, prompts, read_insertions, split_articles
from deep.experiments.probe._records import TASKS, Article, Sample, read_articles, read_samples
from deep.experiments.probe._runs import voter_table
from deep.experiments.stepwise import fenced_messages, read_list, read_verdict
from deep.records import VoteMatrix
from tests.deep_commands import probe as main
from tests.deep_commands import votes as votes_main
from tests.guests.experiments.probe_world import INVENTED, MODELS, answer, parts, sentences, step_of, write_articles
from tests.prompt_pool.injections import INJECTIONS
from tests.scripted_llm import Fault, ScriptedLLM

pytestmark = pytest.mark.usefixtures("own_key")


def words(folder, server, *more, models=MODELS, out="bench"):
    """Return the command line of a build."""
    base = ["build", "--articles", str(folder / "articles.jsonl"), "--out", str(folder / out), "--backoff", "0.01"]
    common = ["--endpoint-name", "here", "--ledger", str(folder / "ledger.sqlite"), "--base-url", server.url]
    return [*base, "--llm", *models, "--articles-by", "all", *common, *map(str, more)]


def every_sample(folder, out="bench"):
    """Return the samples of both splits."""
    return [s for name in ("train", "evaluation") for s in read_samples(folder / out / f"{name}.jsonl")]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Build twelve articles once."""
    folder = tmp_path_factory.mktemp("probe")
    write_articles(folder / "articles.jsonl")
    with pytest.MonkeyPatch.context() as patch, ScriptedLLM(answer) as server:
        patch.setenv("OPENAI_API_KEY", "sk-test")
        assert main(words(folder, server)) == 0
        return folder, server.count, [(asked.model, step_of(asked)) for asked in server.asked]


def test_twelve_articles_make_every_task_and_complexity(built):
    """144 samples, each span found in its text at its offsets."""
    folder, _, _ = built
    samples = every_sample(folder)
    assert Counter((s.task, s.complexity) for s in samples) == {(task, c): 12 for task in TASKS for c in range(4)}
    for sample in samples:
        name = sample.source.split()[3]
        facts = [f"The town of {name} holds {what}." for what in INVENTED[: sample.complexity]]
        assert [i.fact for i in sample.insertions] == facts
        assert [sample.response[slice(*i.span)] for i in sample.insertions] == facts
        assert not any(fact in sample.source for fact in facts)
        for claim in sample.claims:
            assert sample.response[slice(*claim.span)] == claim.segment
            for candidate in claim.candidates:
                assert sample.source[slice(*candidate.excerpt.span)] == candidate.excerpt.text
        assert [claim.text for claim in sample.labeled("hallucinated")] == facts


def test_the_rest_of_a_poisoned_response_is_its_base(built):
    """Taking the insertions out gives the clean response back, but for white space."""
    samples = every_sample(built[0])
    clean = {(s.article_id, s.task): s.response for s in samples if s.complexity == 0}
    for sample in samples:
        rest = sample.response
        for start, end in sorted((i.span for i in sample.insertions), reverse=True):
            rest = rest[:start] + rest[end:]
        assert "".join(rest.split()) == "".join(clean[sample.article_id, sample.task].split())


def test_evidence_is_a_union_and_three_votes_in_four(built):
    """The doubter lets nothing pass: three passes are enough; the keeper's sentence gets two."""
    for sample in every_sample(built[0]):
        for claim in sample.claims:
            keeper = "keeper" in claim.text
            expected = "hallucinated" if claim.text not in sample.source else "unverified" if keeper else "truth"
            assert claim.label == expected
            passes = {"hallucinated": None, "unverified": 2, "truth": 3}[expected]
            assert [(c.passes, c.accepted) for c in claim.candidates] == [(passes, expected == "truth")]


def test_the_splits_share_no_article(built):
    """A fifth of the articles is kept for evaluation."""
    folder, _, _ = built
    train, evaluation = (read_samples(folder / "bench" / f"{name}.jsonl") for name in ("train", "evaluation"))
    assert not {s.article_id for s in train} & {s.article_id for s in evaluation}
    assert not {s.source for s in train} & {s.source for s in evaluation}
    assert (len(train), len(evaluation)) == (120, 24)
    assert len(list(read_examples(str(folder / "bench" / "train.jsonl")))) == 120


def test_the_styles_take_turns(built):
    """Twelve articles in four styles: three each; only style transfer has one."""
    styled = {s.article_id: s.style for s in every_sample(built[0]) if s.task == "style_transfer"}
    assert Counter(styled.values()) == {"blog": 3, "lecture_notes": 3, "faq": 3, "textbook": 3}
    assert {s.style for s in every_sample(built[0]) if s.task != "style_transfer"} == {None}
    assert {bool(s.question) for s in every_sample(built[0]) if s.task == "question_answering"} == {True}


def test_table_1_of_the_build(built):
    """Every count follows from the script: 4 + 2 + 4 base claims, of which the keeper's two are unverified."""
    table = pd.read_csv(built[0] / "bench" / "table1-statistics.csv").set_index("task")
    assert table["instances"].tolist() == [48, 48, 48, 144]
    assert table["hallucinated"].tolist() == [72, 72, 72, 216]
    assert table["truth"].tolist() == [144, 96, 144, 384]
    assert table["unverified"].tolist() == [48, 0, 48, 96]
    assert (table["claims"] == table["hallucinated"] + table["truth"]).all()
    samples = every_sample(built[0])
    lengths = [sum(len(i.fact) for i in s.insertions) for s in samples if s.insertions]
    assert table.loc["overall", "hallucination_length_mean"] == pytest.approx(sum(lengths) / len(lengths), abs=1e-12)
    assert table.loc["overall", "hallucination_length_max"] == max(lengths)
    assert table.loc["overall", "response_length_max"] == max(len(s.response) for s in samples)


def test_what_a_build_costs(built):
    """Questions that are the same are asked once: base content once, claims about one source once."""
    _, count, asked = built
    steps = Counter(step for _, step in asked)
    per_article = {"summarize": 1, "ask": 1, "answer": 1, "restyle": 1, "invent": 3}
    assert {step: steps[step] for step in per_article} == {step: 12 * n for step, n in per_article.items()}
    # three blog posts of the script are their summaries; four base and three invented claims, four models
    assert steps["insert"] == 12 * 9 - 3 * 3
    assert steps["decompose"] == 12 * 12 - 3 * 4
    assert steps["find"] == 12 * (4 + 3) * 4
    assert steps["evaluate"] == 12 * 4 * 4
    assert {model for model, step in asked if step not in ("find", "evaluate")} == {"writer"}
    assert sum(steps.values()) == count


def test_a_build_that_was_stopped_goes_on(tmp_path, capsys):
    """The budget ends it with status 3 and nothing written; again, it asks only what is missing."""
    write_articles(tmp_path / "articles.jsonl", 2)
    prices = tmp_path / "prices.toml"
    prices.write_text("".join(f"[{model}]\ninput = 100.0\noutput = 100.0\n" for model in MODELS))
    with ScriptedLLM(answer) as server:
        assert main(words(tmp_path, server, "--prices", prices, "--budget", "2")) == 3
        assert "nothing was written" in capsys.readouterr().err.lower()
        assert not (tmp_path / "bench").exists()
        part = server.count
        assert main(words(tmp_path, server)) == 0
        whole = server.count
        assert 0 < part < whole
        first = {path.name: path.read_bytes() for path in (tmp_path / "bench").iterdir()}
        assert main(words(tmp_path, server)) == 0
        assert server.count == whole
    assert {path.name: path.read_bytes() for path in (tmp_path / "bench").iterdir()} == first
    bodies = [json.dumps(asked.body, sort_keys=True) for asked in server.asked]
    assert len(bodies) == len(set(bodies)), "nothing was asked twice"


def spoiled(asked):
    """Spoil first answers of article 0, all insertions of article 1, and all decompositions of article 2's answers."""
    message, step = answer(asked), step_of(asked)
    first = asked.body["temperature"] == 0.0 if step == "decompose" else asked.times == 0
    if "Arvo" in asked.user and first and step in SPOILERS:
        return SPOILERS[step](message)
    if "Belko" in asked.user and step == "insert":
        return message.replace("The ", "A ", 1)
    if "Cirta" in asked.user and step == "decompose" and len(sentences(parts(asked)["response"])) == 2:
        return {"claims": []}
    return message


SPOILERS = {
    "summarize": lambda said: Fault("truncated"),
    "ask": lambda said: Fault("refused"),
    "invent": lambda said: {"facts": [*said["facts"], "One too many."]},
    "insert": lambda said: said.replace("<added-1", "<added-9"),
    "decompose": lambda said: "no JSON",
}


def test_unusable_answers_are_asked_again_and_bounded(tmp_path, capsys):
    """Each rejection is counted by its cause; a sample whose step never succeeds is given up, the others stand."""
    write_articles(tmp_path / "articles.jsonl", 3)
    with ScriptedLLM(spoiled) as server:
        assert main(words(tmp_path, server, "--attempts", 2, models=["writer"])) == 0
    results = json.loads((tmp_path / "bench" / "results.json").read_text())
    rejected = results["rejected_answers"]
    assert rejected["insert: the rest was altered"] == 9 * 2
    assert rejected["insert: an addition cannot be located"] == 9
    assert rejected["decompose: unparsable"] == 12 + 2
    assert rejected["summarize: truncated"] == 4
    assert rejected["ask: refused"] == 4
    assert rejected["invent: fewer facts than requested"] == 9
    assert results["given_up"] == 9 + 1
    kept = Counter((s.article_id, s.complexity > 0) for s in every_sample(tmp_path))
    assert kept == {("a0", False): 3, ("a0", True): 9, ("a1", False): 3, ("a2", False): 2, ("a2", True): 9}
    assert "10 given up" in capsys.readouterr().out


def test_nothing_usable_is_an_error(tmp_path, capsys):
    """One line, status 2, nothing written."""
    write_articles(tmp_path / "articles.jsonl", 1)
    with ScriptedLLM(lambda asked: Fault("refused")) as server:
        assert main(words(tmp_path, server, "--attempts", 1, models=["writer"])) == 2
    message = capsys.readouterr().err
    assert message == (
        "error: `llm` must give usable answers. Got none; 4 ask: refused, 4 restyle: refused, 4 summarize: refused.\n"
    )
    assert not (tmp_path / "bench").exists()


def test_evidence_and_votes_that_fail_leave_claims_unverified(tmp_path):
    """A model that finds nothing or votes nothing is no pass; two models of two have to agree."""
    write_articles(tmp_path / "articles.jsonl", 1)

    def script(asked):
        broken = asked.model == "broken" and step_of(asked) in ("find", "evaluate")
        return "I do not know." if broken else answer(asked)

    with ScriptedLLM(script) as server:
        assert main(words(tmp_path, server, "--tasks", "summarization", models=["writer", "broken"])) == 0
    results = json.loads((tmp_path / "bench" / "results.json").read_text())
    assert results["table1"][0]["truth"] == 0
    assert results["table1"][0]["unverified"] == 16
    assert results["left_out"]["evidence replies without an answer"] == 4 + 5 + 6 + 7


def test_export_for_training(built, tmp_path, capsys):
    """Chats whose answers our own readers read; PASS and FAIL both occur, and no sample of the evaluation split."""
    out = tmp_path / "sft.jsonl"
    assert main(["export-sft", "--data", str(built[0] / "bench"), "--out", str(out)]) == 0
    chats = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    # ten articles: three true claims with an excerpt each, three invented with one each
    assert Counter(chat["step"] for chat in chats) == {"find": 10 * 3, "evaluate": 10 * (3 + 3)}
    assert capsys.readouterr().out.startswith("30 finding and 60 evaluation examples")
    held_out = {s.source for s in read_samples(built[0] / "bench" / "evaluation.jsonl")}
    verdicts: Counter[int] = Counter()
    for chat in chats:
        assert [message["role"] for message in chat["messages"]] == ["system", "user", "assistant"]
        assert not any(source in chat["messages"][1]["content"] for source in held_out)
        reply = as_reply(chat["messages"][2]["content"])
        if chat["step"] == "find":
            assert len(read_list(reply, "evidence")) == 1
        else:
            verdicts[vote := read_verdict(reply).vote] += 1
            assert ("excerpt establishes" in reply.text) == (vote == 1), "the reason says what the verdict does"
    assert verdicts == {1: 30, 0: 30}


def test_export_never_overwrites_the_benchmark(built, capsys):
    """One line, and the file is what it was."""
    for name in ("train.jsonl", "evaluation.jsonl"):
        file = built[0] / "bench" / name
        before = file.read_bytes()
        assert main(["export-sft", "--data", str(built[0] / "bench"), "--out", str(file)]) == 2
        assert "`out` must not overwrite the benchmark" in capsys.readouterr().err
        assert file.read_bytes() == before
    assert main(["export-sft", "--data", str(built[0] / "bench"), "--out", str(file.with_suffix(".csv"))]) == 2
    assert "`out` must end in .jsonl" in capsys.readouterr().err


@pytest.mark.parametrize("text", INJECTIONS.values(), ids=INJECTIONS)
def test_articles_cannot_break_the_builders_prompts(text):
    """Whatever an article, a response, a fact or a claim says stands between tags that are not in it."""
    texts = {"source": f"News. {text}", "response": text, "facts": text, "question": text}
    words = {"count": "1 fact", "manner": "Plainly.", "style": "a blog post."}
    asked = [(step, prompts()[step]) for step in ("summarize", "ask", "answer", "restyle", "invent", "insert")]
    for step, prompt in asked:
        names = [name for name in texts if f"{{{{{name}}}}}" in prompt["user"]]
        fenced = fenced_messages(prompt, {name: texts[name] for name in names}, **words)
        plain = fenced_messages(prompt, dict.fromkeys(names, "x"), **words)
        assert outside(fenced[1]["content"]) == outside(plain[1]["content"]), step
        assert fenced[0] == plain[0]


def outside(content):
    """Return a prompt without its fenced texts and its code."""
    codes = re.findall(r"^<\w+-([0-9a-f]{8})>$", content, re.MULTILINE)
    rest = re.sub(rf"^<(\w+)-{codes[0]}>\n.*?\n</\1-{codes[0]}>$", r"<\1>", content, flags=re.DOTALL | re.MULTILINE)
    return rest.replace(codes[0], "CODE")


def test_any_judge_is_measured_on_the_benchmark(built, tmp_path, capsys):
    """The staged judges vote on the file as it is; the script's writer is always right, and so are its votes."""
    data = built[0] / "bench"
    with ScriptedLLM(answer) as server:
        out = tmp_path / "votes.parquet"
        common = ["--llm", "writer", "--base-url", server.url, "--out", str(out)]
        assert votes_main([str(data / "evaluation.jsonl"), "--judge", "stepwise", "direct", *common]) == 0
        assert Counter(map(step_of, server.asked))["find"] == 2 * (4 + 3), "asked once for each claim about a source"
    votes = pd.read_parquet(out)
    assert [name.partition("@")[0] for name in votes.columns[4:]] == ["stepwise", "direct"]
    assert all((votes[name] == votes["label"]).all() for name in votes.columns[4:])
    capsys.readouterr()
    words = ["eval", "--data", str(data), "--votes", str(out), "--out", str(tmp_path / "voters")]
    assert main(words) == 0
    message = capsys.readouterr().out
    assert "is best: it calls 100 % of the hallucinated responses inconsistent." in " ".join(message.split())
    assert message.endswith(f"report: open {tmp_path / 'voters' / 'report.html'}\n")
    table = pd.read_csv(tmp_path / "voters" / "voters.csv")
    assert len(table) == 2 * 4 * 4
    assert (table["called"] == (table["complexity"] > 0)).all()
    assert table["no_vote"].sum() == 0
    votes.iloc[1:].to_parquet(out)
    assert main(words) == 2
    assert "`votes` must have a row for every sample. Got none for 'a" in capsys.readouterr().err
    assert main([*words, "--llm", "m"]) == 2
    assert "`llm` must be given where LLMs are asked. Got it with votes." in capsys.readouterr().err
    assert main([*words, "--stage", "find"]) == 2
    assert "`stage` must be given where LLMs are asked. Got it with votes." in capsys.readouterr().err
    for wrong in (__file__, str(tmp_path), "absent.parquet"):
        capsys.readouterr()
        assert main(["eval", "--data", str(data), "--votes", wrong, "--out", str(tmp_path / "voters")]) == 2
        assert wrong in capsys.readouterr().err


def test_a_response_without_a_vote_is_not_called():
    """Neither consistent nor inconsistent; it stays in the denominator and is counted."""
    names = {"item_ids": ["a/0", "b/1", "c/1"], "voter_names": ["v"], "datasets": ["probe-summarization"] * 3}
    votes = VoteMatrix(votes=[[1], [0], [-1]], labels=[1, 0, 0], **names)
    rows = voter_table(votes, SMALL).set_index(["task", "complexity"])
    assert rows.loc[("overall", 1), ["responses", "no_vote", "called"]].tolist() == [2, 1, 0.5]
    assert rows.loc[("summarization", 0), ["responses", "no_vote", "called"]].tolist() == [1, 0, 0.0]


SMALL = [
    Sample(article_id=name, source="s", task="summarization", complexity=complexity, response="r")
    for name, complexity in (("a", 0), ("b", 1), ("c", 1))
]


def as_reply(text):
    """Return a reply that says `text`."""
    from types import SimpleNamespace

    return SimpleNamespace(text=text, finish_reason="stop", refusal=None, model="m", tokens={})


def test_wrong_options(tmp_path, capsys):
    """One line, status 2; a role without an LLM, or a verifier named twice, is one too."""
    write_articles(tmp_path / "articles.jsonl", 1)
    base = ["build", "--articles", str(tmp_path / "articles.jsonl"), "--out", str(tmp_path / "b")]
    for words, message in (
        ("--llm m --consensus 1.5", "`consensus` must lie in"),
        ("--llm m --evaluation-share 0", "`evaluation_share` must lie in"),
        ("--llm m --attempts 0", "`attempts` must be 1 or more"),
        ("--llm m --evaluation-size 0", "`evaluation_size` must be 1 or more"),
        ("--llm m --llm m", "`llm` must name each LLM once. Got 'm' twice."),
        ("--llm m --articles absent.jsonl", "`articles` must be readable. Got 'absent.jsonl': No such file"),
        ("--llm m --articles absent.txt", "`articles` must be a CSV, JSON, JSONL or Parquet file"),
        ("--llm m --tasks poetry", "`tasks` must be one of question_answering, style_transfer, summarization"),
        ("", "`llm` must be given. Got none."),
        ("--writer a", "`llm` must be given. Got none."),
        ("--writer a --verifier b b", "`verifier` must name each LLM once. Got 'b' twice."),
        ("--writer a --verifier b\nc", "`llm` must"),
    ):
        assert main([*base, *words.split(" ")] if words else base) == 2
        assert message in capsys.readouterr().err


def test_wrong_articles(tmp_path):
    """The place is named; from CSV without ids, rows are numbered."""
    path = tmp_path / "articles.jsonl"
    for rows, message in (
        ([], "at least one row"),
        ([{"text": " "}], "`text` must be text"),
        ([{"body": "x"}], "`text` must be text. Got None in row 1"),
        ([{"text": "a", "article_id": "x"}, {"text": "b", "article_id": "x"}], "`article_id` must be given once"),
        ([{"text": "a  b"}, {"text": "a b"}], "`text` must be given once. Got the same in row 2 of"),
        ([{"text": "a\0"}], "without NUL"),
        ([{"text": "a", "task": "poetry"}], "`task` must be one of .* Got 'poetry' in row 1"),
    ):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        with pytest.raises(InputError, match=message):
            read_articles(path)
    path = tmp_path / "articles.csv"
    path.write_text("text\nIt rained.\nIt snowed.\n")
    assert read_articles(path) == [Article("1", "It rained."), Article("2", "It snowed.")]


def samples_of(articles, dealt):
    """Return four samples for each article and task, as a build without rejected answers makes them."""
    return [
        Sample(article_id=a.article_id, source="s", task=task, complexity=complexity, response="r")
        for a in articles
        for task in dealt[a.article_id]
        for complexity in range(4)
    ]


@given(st.integers(1, 60), st.floats(0.01, 1.0), st.integers(1, 30), st.integers(0, 5), st.sampled_from(ARTICLES_BY))
def test_a_split_depends_on_ids_and_the_seed_only(n, share, size, seed, by):
    """Of two articles of a task neither split is empty; evaluation holds the size wanted, or the share of articles."""
    articles = [Article(str(i), str(i)) for i in range(n)]
    dealt = deal_tasks(articles, TASKS, by, seed)
    assert dealt == deal_tasks(articles[::-1], TASKS, by, seed)
    wanted = {"size": size, "share": share, "seed": seed}
    split = split_articles(articles, dealt, samples_of(articles, dealt), **wanted)
    assert split == split_articles(articles[::-1], dealt, samples_of(articles, dealt)[::-1], **wanted)
    for task in TASKS:
        group = [name for name, tasks in dealt.items() if task in tasks]
        kept = sum(split[name] == "evaluation" for name in group)
        most = max(1, min(round(share * len(group)), len(group) - 1))
        assert kept == min(most, -(-size // 4))
        assert len(group) == (n if by == "all" or n < 3 else len(range(TASKS.index(task), n, 3)))


def test_roles_apart_and_articles_by_task(tmp_path, capsys):
    """The writer writes, the decomposer takes apart, three verifiers vote; each article serves one task."""
    write_articles(tmp_path / "articles.jsonl", 7)
    lines = (tmp_path / "articles.jsonl").read_text().splitlines()
    own = json.dumps({**json.loads(lines[0]), "task": "question_answering"})
    (tmp_path / "articles.jsonl").write_text("\n".join([own, *lines[1:]]) + "\n")
    roles = ["--writer", "w", "--decomposer", "d", "--verifier", "reader", "checker", "doubter", "--consensus", "0.6"]
    with ScriptedLLM(answer) as server:
        base = ["build", "--articles", str(tmp_path / "articles.jsonl"), "--out", str(tmp_path / "bench"), *roles]
        assert main([*base, "--base-url", server.url, "--json"]) == 0
    asked = Counter((asked.model, step_of(asked)) for asked in server.asked)
    by_step = {step: {model for model, other in asked if other == step} for _, step in asked}
    assert by_step.pop("decompose") == {"d"}
    assert by_step.pop("find") == by_step.pop("evaluate") == {"reader", "checker", "doubter"}
    assert set.union(*by_step.values()) == {"w"}
    results = json.loads(capsys.readouterr().out)
    settings = results["settings"]
    assert (settings["writer"], settings["decomposer"], settings["verifiers"]) == ("w", "d", roles[5:8])
    assert settings["articles_by"] == "task"
    assert settings["articles_of"] == {"question_answering": 3, "style_transfer": 2, "summarization": 2}
    assert results["splits"]["evaluation"]["by_task"] == dict.fromkeys(sorted(TASKS), 4)
    samples = every_sample(tmp_path)
    assert Counter(sample.task for sample in samples if sample.article_id == "a0") == {"question_answering": 4}
    assert {c.passes for s in samples for claim in s.claims for c in claim.candidates} == {None, 1, 2}


pieces = st.text("abc .,\n", min_size=0, max_size=12)


@given(
    st.lists(st.tuples(pieces, st.text("xyz ", min_size=1, max_size=8).filter(str.strip)), min_size=1, max_size=4),
    pieces,
)
def test_tags_come_out_and_leave_their_places(some, last):
    """Whatever is tagged is found at its span, and the rest is what it was."""
    edited = (
        "".join(f"{before}<added-{n}-0a1b>{added}</added-{n}-0a1b>" for n, (before, added) in enumerate(some, 1)) + last
    )
    base = "".join(before for before, _ in some) + last
    read = read_insertions(edited, base, "0a1b", len(some))
    assert not isinstance(read, Rejected)
    text, spans = read
    assert [text[slice(*span)] for span in spans] == [added.strip() for _, added in some]
    assert read_insertions(edited + " more", base, "0a1b", len(some)) == Rejected("insert", "the rest was altered")
    assert read_insertions(edited, base, "0a1b", len(some) + 1) == Rejected("insert", "an addition cannot be located")


@pytest.mark.parametrize(
    ("edited", "why"),
    [
        ("It fell.", "an addition cannot be located"),
        ("It fell<added-1-0a> hard.", "an addition cannot be located"),
        ("It fell<added-2-0a> hard</added-2-0a>.", "an addition cannot be located"),
        ("It fell<added-1-0b> hard</added-1-0b>.", "an addition cannot be located"),
        ("It <added-1-0a>a<added-1-0a>b</added-1-0a></added-1-0a>fell.", "an addition cannot be located"),
        ("It<added-1-0a> a</added-1-0a> fell<added-1-0a> b</added-1-0a>.", "an addition cannot be located"),
        ("It fell<added-1-0a>, </added-1-0a>.", "an addition is empty"),
        ("It sank<added-1-0a> hard</added-1-0a>.", "the rest was altered"),
        ("<added-1-0a>It fell.</added-1-0a>", "the rest was altered"),
        ("Sure! It fell<added-1-0a> hard</added-1-0a>.", "the rest was altered"),
    ],
)
def test_insertions_that_are_rejected(edited, why):
    """Each with its cause."""
    assert read_insertions(edited, "It fell.", "0a", 1) == Rejected("insert", why)


@given(st.text("<>/added-10 a.\n", max_size=120))
def test_reading_insertions_never_raises(edited):
    """Any text is a response with its spans, or a rejection."""
    read = read_insertions(edited, "a", "0", 1)
    assert isinstance(read, Rejected | tuple)

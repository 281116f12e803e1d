"""Rename `kept`, `given` and `asked` to nouns. Run in the root of a checkout, with Python 3.11 or newer.

    python rename_participles.py [--public] [--check]

`--public` applies PUBLIC too: parameters and attributes that the reference of the Python interface lists.
`--check` writes nothing. What cannot be renamed is skipped with a printed line. Run `ruff format` on what changed.
"""

import ast
import builtins
import io
import keyword
import re
import sys
import tokenize
from collections import defaultdict
from pathlib import Path

# Names of variables and parameters: (file below deep/, scope, old, new). "" is the module: its lambdas alone. "NAME[]"
# is what comprehensions of NAME bind; an entry for NAME without [] then leaves these.
NAMES = [
    ("_util/checks.py", "several", "given", "value"),
    ("_util/files.py", "_move", "kept", "state"),
    ("_util/files.py", "_keep_beside", "kept", "places"),
    ("_util/frames.py", "_refused", "given", "cells"),
    ("_util/join.py", "read_part", "given", "others"),
    ("_util/join.py", "_merge", "given", "columns"),
    ("_util/join.py", "_merge_families", "given", "places"),
    ("_util/options.py", "option", "given", "spec"),
    ("_util/options.py", "topic_values", "given", "values"),
    ("_util/scales.py", "Scale.parse", "given", "form"),
    ("asking/_functions.py", "call_key", "asked", "details"),
    ("asking/_summary.py", "summary", "given", "by_name"),
    ("base.py", "BasePromptSelector.inverse_transform", "kept", "votes"),
    ("base.py", "BaseEnsembler.fit", "kept", "mask"),
    ("base.py", "BaseCalibrator.fit", "kept", "mask"),
    ("calibration/_calibrators.py", "_constrained", "kept", "mask"),
    ("calibration/_calibrators.py", "_fit_columns", "kept", "mask"),
    ("calibration/_intervals.py", "_accuracy_interval", "kept", "has_both"),
    ("calibration/_intervals.py", "_differences", "kept", "has_both"),
    ("calibration/_metrics.py", "checked_rows", "kept", "mask"),
    ("cli.py", "_main", "asked", "invocation"),
    ("datasets/_tables.py", "check_same_labels", "given", "score_labels"),
    ("datasets/benchmarks.py", "homes", "given", "home"),
    ("evaluate/_holdout.py", "_training_mask", "kept", "mask"),
    ("evaluate/_holdout.py", "rows_of_both_classes", "kept", "mask"),
    ("evaluate/_holdout.py", "_without_shared_documents", "kept", "mask"),
    ("experiments/cognibench/_cognibench_tables.py", "_by_generator", "kept", "labels"),
    ("experiments/cognibench/_methods.py", "asked_judges", "asked", "judges"),
    ("experiments/cognibench/_methods.py", "ask_judges", "asked", "judges"),
    ("experiments/cognibench/_methods.py", "_method", "asked", "judge"),
    ("experiments/cognibench/_methods.py", "read_spans", "given", "entry"),
    ("experiments/cognibench/_runs.py", "evaluate", "asked", "judges"),
    ("experiments/cognibench/_runs.py", "evaluate", "given", "entry"),
    ("experiments/cognibench/_runs.py", "_dry_run", "asked", "judges"),
    ("experiments/cognibench/_runs.py", "curve", "given", "pair"),
    ("experiments/cognibench/_runs.py", "_point", "given", "pair"),
    ("experiments/cognibench/_runs.py", "export", "kept", "rest"),
    ("experiments/cognibench/_runs.py", "_read", "given", "names"),
    ("experiments/fect/_command.py", "_run", "given", "verdicts"),
    ("experiments/fect/_command.py", "_plan", "given", "sources"),
    ("experiments/fect/_command.py", "_given", "given", "verdicts"),
    ("experiments/fect/_command.py", "_given", "asked", "voters"),
    ("experiments/few_datasets.py", "draws_of", "given", "text"),
    ("experiments/few_datasets.py", "_measure", "kept", "rows"),
    ("experiments/few_datasets.py", "few_panel", "kept", "matrix"),
    ("experiments/few_datasets.py", "measurable", "kept", "mask"),
    ("experiments/loo/_command.py", "_settings", "given", "values"),
    ("experiments/loo/_command.py", "_trained_on", "kept", "mask"),
    ("experiments/loo/_command.py", "run", "kept", "seed_votes"),
    ("experiments/loo/_model.py", "held_out_together", "kept", "matrix"),
    ("experiments/loo/_rivals.py", "compare_parts", "kept", "figures"),
    ("experiments/loo/_run.py", "loo", "asked", "options"),
    ("experiments/loo/_run.py", "write_scores", "kept", "metadata"),
    ("experiments/loo/_run_tables.py", "_errors", "kept", "errors"),
    ("experiments/loo/_run_tables.py", "threshold_moves", "kept", "mask"),
    ("experiments/loo/_show.py", "_chains", "asked", "names"),
    ("experiments/loo/_show.py", "part_lines", "kept", "with_parts"),
    ("experiments/paper/_command.py", "run", "given", "all_votes"),
    ("experiments/paper/_paper_tables.py", "_columns", "kept", "mask"),
    ("experiments/paper/_paper_tables.py", "_llm_solution", "asked", "parts"),
    ("experiments/printed/_passages.py", "match", "kept", "spans"),
    ("experiments/printed/_passages.py", "_lay_out", "kept", "runs"),
    ("experiments/printed/_passages.py", "_whole_lines", "kept", "runs"),
    ("experiments/printed/_printed_judges.py", "PrintedSteps.messages", "asked", "templates"),
    ("experiments/printed/_printed_judges.py", "load_steps", "asked", "table"),
    ("experiments/printed/_printed_judges.py", "reworded", "asked", "pairs"),
    ("experiments/probe/_content.py", "write_sample", "asked", "question"),
    ("experiments/probe/_content.py", "_base", "asked", "question"),
    ("experiments/probe/_content.py", "_with_candidates", "asked", "pairs"),
    ("experiments/probe/_content.py", "_with_votes", "asked", "ballots"),
    ("experiments/probe/_probe_measures.py", "_evaluation[]", "given", "one"),
    ("experiments/probe/_probe_measures.py", "_evaluation", "given", "answers"),
    ("experiments/probe/_probe_measures.py", "_evaluation", "asked", "total"),
    ("experiments/probe/_probe_measures.py", "with_alike.alike", "kept", "matches"),
    ("experiments/probe/_runs.py", "verdict_of", "asked", "aside"),
    ("experiments/stepwise/_stepwise_judge.py", "_PassageJudge.version", "asked", "steps"),
    ("experiments/study.py", "draw_bars", "given", "lengths"),
    ("experiments/tiered/_tiered_judges.py", "ReviewedTurn.said", "asked", "own_tallies"),
    ("features/lexical/_facts.py", "_acronyms", "kept", "name"),
    ("integrations/batch/_api.py", "BatchRunner._collect", "asked", "by_key"),
    ("integrations/batch/_files.py", "BatchImporter.run", "asked", "by_key"),
    ("integrations/batch/_files.py", "BatchImporter._carry_out", "kept", "pairs"),
    ("integrations/doctor.py", "_describe_judges", "kept", "columns"),
    ("integrations/doctor.py", "_table_commands", "given", "paths"),
    ("integrations/encoders/_encoder_judge.py", "_asked", "asked", "choice"),
    ("integrations/encoders/_network.py", "_checked", "given", "origin"),
    ("integrations/encoders/_network.py", "_usual", "given", "origin"),
    ("integrations/encoders/_network.py", "read_parts", "given", "origin"),
    ("integrations/encoders/_network.py", "_check_kind", "given", "origin"),
    ("integrations/encoders/_network.py", "_weights", "given", "origin"),
    ("integrations/encoders/_network.py", "_pad", "given", "origin"),
    ("integrations/encoders/_network.py", "_limit", "asked", "limit"),
    ("integrations/encoders/_published.py", "_loaded", "given", "text"),
    ("integrations/engines/_command.py", "run", "given", "inputs"),
    ("integrations/engines/_engine_tables.py", "BatchScorer._kept", "kept", "others"),
    ("integrations/engines/_moments.py", "Moments.check_same", "given", "theirs"),
    ("integrations/foreign/_read.py", "_items", "given", "columns"),
    ("integrations/foreign/_read.py", "_of_inspect", "given", "result"),
    ("integrations/foreign/_read.py", "_table_columns", "given", "choices"),
    ("integrations/foreign/_read.py", "_Settled._is_high", "given", "grade"),
    ("integrations/foreign/_read.py", "_Settled._judgment", "asked", "details"),
    ("integrations/foreign/_tools.py", "ForeignOptions.words", "given", "votes"),
    ("integrations/foreign/_tools.py", "first_of", "given", "values"),
    ("integrations/foreign/_tools.py", "_inspect_samples", "kept", "rows"),
    ("integrations/foreign/_tools.py", "question_of", "given", "question"),
    ("integrations/foreign/_tools.py", "column_roles", "given", "choices"),
    ("integrations/forget/__init__.py", "run", "given", "patterns"),
    ("integrations/inspect.py", "consistency.score", "given", "document"),
    ("integrations/inspect.py", "committee.score", "given", "default"),
    ("integrations/labeling/_desk.py", "LabelDesk.answer", "given", "value"),
    ("integrations/labeling/_desk.py", "LabelDesk.again", "given", "answer"),
    ("integrations/labeling/_desk.py", "LabelDesk.write", "kept", "remark"),
    ("integrations/labeling/_desk.py", "LabelDesk._said", "given", "answer"),
    ("integrations/labeling/_desk.py", "LabelDesk._progress", "given", "answer"),
    ("integrations/labeling/_desk.py", "label_app", "asked", "body"),
    ("integrations/labeling/_desk.py", "_kept", "asked", "body"),
    ("integrations/labeling/_desk.py", "_text", "asked", "body"),
    ("integrations/labeling/_desk.py", "_name", "asked", "body"),
    ("integrations/labeling/_desk.py", "_label", "asked", "body"),
    ("integrations/labeling/_label_book.py", "Annotations.disagreements", "given", "by_annotator"),
    ("integrations/labeling/_label_book.py", "_table_1", "given", "value"),
    ("integrations/labeling/_label_book.py", "AnswerBook.labels", "given", "answer"),
    ("integrations/labeling/_label_book.py", "AnswerBook.labels", "kept", "entries"),
    ("integrations/labeling/_label_book.py", "AnswerBook.labelers", "given", "answer"),
    ("integrations/labeling/_label_book.py", "AnswerBook.balance", "given", "answer"),
    ("integrations/labeling/_label_book.py", "AnswerBook.annotation_rows", "given", "answer"),
    ("integrations/labeling/_label_book.py", "keep_other_labels", "given", "by_item"),
    ("integrations/labeling/_label_log.py", "LabelLog._write", "kept", "note"),
    ("integrations/labeling/_subject.py", "LabelSubject.commands", "given", "table"),
    ("integrations/labeling/_subject.py", "read_label_subject", "given", "file_model"),
    ("integrations/labeling/_subject.py", "export_labels", "kept", "remark"),
    ("integrations/labeling/_subject.py", "label_summary", "given", "counts"),
    ("integrations/pack/__init__.py", "run", "asked", "has_replies"),
    ("integrations/pairs/_command.py", "run", "given", "scores"),
    ("integrations/sequential/_one_by_one.py", "_figures", "asked", "calls"),
    ("integrations/sequential/_one_by_one.py", "_listed", "asked", "by_name"),
    ("integrations/sequential/_one_by_one.py", "_prices", "asked", "llm_columns"),
    ("integrations/serve/_app.py", "create_app", "asked", "setup"),
    ("integrations/serve/_app.py", "AgentDoor._check", "given", "arguments"),
    ("integrations/serve/_app.py", "AgentDoor._score", "given", "arguments"),
    ("integrations/serve/_app.py", "AgentDoor._verdict", "given", "arguments"),
    ("integrations/serve/_app.py", "AgentDoor._matrix", "given", "arguments"),
    ("integrations/serve/_checker.py", "Checker.__init__", "given", "setup"),
    ("integrations/serve/_checker.py", "Checker.__init__", "kept", "judge"),
    ("integrations/serve/_checker.py", "Checker.check", "asked", "by_id"),
    ("integrations/serve/_checker.py", "_pair", "asked", "entry"),
    ("integrations/serve/_exchange.py", "GuardedResponse.__init__", "asked", "request"),
    ("integrations/serve/_exchange.py", "GuardedResponse.send", "given", "headers"),
    ("integrations/serve/_exchange.py", "GuardedResponse._missing", "given", "headers"),
    ("integrations/serve/_guard.py", "Access.allows", "given", "credentials"),
    ("integrations/serve/_guard.py", "_same", "given", "text"),
    ("integrations/serve/_guard.py", "find_token", "given", "env_token"),
    ("integrations/serve/_guard.py", "Guard._check_media_type", "given", "media_type"),
    ("integrations/serve/_protocol.py", "TimedProtocol.__init__", "given", "options"),
    ("llm/_errors.py", "own_words", "asked", "request"),
    ("model/chain/_search.py", "predict_left_out", "kept", "cells"),
    ("model/chain/_search.py", "_predict_without", "kept", "cells"),
    ("model/chain/_training.py", "KeptCells._summed", "kept", "groups"),
    ("model/file/_document.py", "_chain_values", "kept", "data"),
    ("model/file/_document.py", "", "kept", "one"),
    ("model/file/_kinds.py", "record", "given", "entries"),
    ("model/file/_model.py", "Model.score_frame", "given", "matrix"),
    ("model/linear/_average.py", "Rows.rows", "kept", "index"),
    ("model/regimes/_regimes.py", "chain_model", "kept", "fold_cells"),
    ("model/score/_scores.py", "DecisionRule._why", "kept", "estimate"),
    ("prompt_pool/_prompt.py", "Prompt._with_place_for", "asked", "starts"),
    ("prompt_pool/reader/_reader.py", "elements", "asked", "sure"),
    ("prompt_pool/reader/_reader.py", "ReplyReader._stated", "asked", "marker"),
    ("prompt_pool/reader/_sayings.py", "_sentences", "asked", "is_answer"),
    ("prompt_pool/reader/_sayings.py", "stated", "kept", "answers"),
    ("records.py", "VoteMatrix.__init__", "given", "values"),
    ("records.py", "VoteMatrix._check", "given", "names"),
    ("report/_items.py", "TextColumns.add", "given", "texts"),
    ("report/_items.py", "TextColumns.values", "asked", "questions"),
    ("report/_sources.py", "read_material", "given", "present"),
    ("report/_sources.py", "_of_run", "given", "paths"),
]

# Attributes, fields and methods: (file, class or function, old, new). A class renames its field or method of the name,
# and every `.old` below it; a function every `.old` in it.
ATTRIBUTES = [
    ("evaluate/_contribution.py", "_FittedPanel", "_kept", "_terms"),
    ("experiments/printed/_passages.py", "Match", "kept", "spans"),
    ("experiments/printed/_passages.py", "cut", "kept", "spans"),
    ("integrations/engines/_engine_tables.py", "BatchScorer", "_kept", "_others"),
    ("integrations/labeling/_label_book.py", "AnswerBook", "given", "history"),
    ("integrations/labeling/_label_book.py", "keep_other_labels", "given", "history"),
    ("integrations/sequential/_one_by_one.py", "Prices", "asked", "llm_columns"),
    ("integrations/sequential/_one_by_one.py", "_figures", "asked", "llm_columns"),
    ("integrations/sequential/_one_by_one.py", "OneByOne.training", "asked", "llm_columns"),
    ("integrations/serve/_exchange.py", "GuardedResponse", "_asked", "_request"),
    ("integrations/serve/_live.py", "LiveAsker", "asked", "futures"),
    ("integrations/serve/_live.py", "_Turn._ask", "asked", "futures"),
]

# Keywords at calls: (file, scope of the call, old, new).
KEYWORDS = [("model/chain/_search.py", "predict_left_out", "kept", "cells")]

# Docstrings, tests and mutants, as plain text: (file from the root, old, new).
TEXTS = [
    ("deep/calibration/_calibrators.py", "Fit the kept columns, with", "Fit the columns of a mask, with"),
    ("deep/evaluate/_holdout.py", "    kept : ndarray of bool, shape", "    mask : ndarray of bool, shape"),
    ("deep/experiments/cognibench/_methods.py", "    given : str\n", "    entry : str\n"),
    ("deep/experiments/printed/_passages.py", "    `kept` are the runs of", "    `spans` are the runs of"),
    ("deep/integrations/encoders/_network.py", "errors call it as it was `given`.", "errors call it by its `origin`."),
    ("deep/integrations/encoders/_network.py", "`asked` can only lower it", "`limit` can only lower it"),
    ("deep/integrations/labeling/_label_book.py", "    given : set of (Item", "    history : set of (Item"),
    ("deep/integrations/sequential/_one_by_one.py", "    asked : tuple of int", "    llm_columns : tuple of int"),
    ("deep/integrations/serve/_protocol.py", "    **given\n", "    **options\n"),
    ("deep/llm/_errors.py", "    asked : str\n        The request", "    request : str\n        The request"),
    ("deep/llm/schema.py", "for _dialect, _kept in", "for _dialect, _storage in"),
    ("deep/llm/schema.py", "requested_body)) {_kept}", "requested_body)) {_storage}"),
    ("deep/model/file/_kinds.py", "    **given : JsonKind", "    **entries : JsonKind"),
    # A mutant that a test notices finds its place by this text.
    ("benchmarks/mutants/house.json", "(dollars[asked] > 0)", "(dollars[llm_columns] > 0)"),
    ("benchmarks/mutants/house.json", "(dollars[asked] <= 0)", "(dollars[llm_columns] <= 0)"),
    ("benchmarks/mutants/house.json", "tuple(asked), \\\"dollars\\\"", "tuple(llm_columns), \\\"dollars\\\""),
]

# The same, for names that the reference of the Python interface lists; with --public.
PUBLIC_NAMES = [
    ("datasets/_simulate.py", "score_ranges", "given", "ranges"),
    ("datasets/_tables.py", "is_paths", "given", "value"),
    ("datasets/_tables.py", "is_frame", "given", "value"),
    ("integrations/encoders/_published.py", "load_named_encoder", "given", "text"),
    ("integrations/encoders/_published.py", "load_named_embedding", "given", "text"),
    ("llm/_client.py", "call_error", "asked", "request"),
    ("llm/_client.py", "reply_error", "asked", "request"),
    ("llm/_spending.py", "Tally.name", "asked", "model"),
    ("model/adaptation/_correction.py", "Clusters.from_documents", "kept", "mask"),
    ("model/file/_model.py", "Model.prior_at", "given", "mean"),
    ("model/regimes/_fit.py", "fit_asked", "asked", "options"),
]
PUBLIC_ATTRIBUTES = [
    ("model/file/_table.py", "ChainScorer", "kept", "cells"),
    ("model/file/_document.py", "_chain_values", "kept", "cells"),
    ("model/file/_load.py", "_check_refit", "kept", "cells"),
]
PUBLIC_KEYWORDS = [
    ("llm/_client.py", "call_error", "asked", "request"),
    ("model/adaptation/_canary.py", "canary", "kept", "mask"),
    ("model/adaptation/_correction.py", "Belief.check", "kept", "mask"),
    ("model/adaptation/_share.py", "estimate_share", "kept", "mask"),
]
PUBLIC_TEXTS = [
    ("deep/datasets/_simulate.py", "    given : mapping of str to", "    ranges : mapping of str to"),
    ("deep/datasets/_simulate.py", "that are known: those given, else", "that are known: of `ranges`, else"),
    ("deep/integrations/encoders/_published.py", "    given : str\n", "    text : str\n"),
    ("deep/llm/_client.py", "    asked : str\n", "    request : str\n"),
    ("deep/llm/_client.py", "to what was `asked`; raise", "to a `request`; raise"),
    ("deep/model/adaptation/_correction.py", "`kept` chooses rows of", "`mask` chooses rows of"),
    ("deep/model/file/_table.py", "    kept : KeptCells", "    cells : KeptCells"),
    ("tests/llm/test_too_long.py", "asked=quoted)", "request=quoted)"),
    ("tests/model/test_fit_chain.py", "model.chain.kept.joint", "model.chain.cells.joint"),
    ("tests/model/test_fit_chain.py", "scorer.kept.weighting, scorer.kept.group_by", "scorer.cells.weighting, scorer.cells.group_by"),
    ("tests/model/test_fit_chain.py", "**QUICK).chain.kept\n", "**QUICK).chain.cells\n"),
]

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def scopes(tree):
    """Return the classes and functions of a file by qualified name, each with the functions around it."""
    result = {"": (tree, [])}

    def walk(node, name, around):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.ClassDef, *FUNCTIONS)):
                own = f"{name}.{child.name}".lstrip(".")
                result[own] = child, around  # the last: behind overloads
                walk(child, own, [*around, child] if isinstance(child, FUNCTIONS) else around)
            else:
                walk(child, name, around)

    walk(tree, "", [])
    return result


def in_lambdas(tree, old):
    """Yield the nodes of lambdas at the level of the module that take a parameter of the name."""
    for node in tree.body:
        if not isinstance(node, (ast.ClassDef, *FUNCTIONS)):
            lambdas = [n for n in ast.walk(node) if isinstance(n, ast.Lambda)]
            yield from (n for one in lambdas if any(a.arg == old for a in one.args.args) for n in ast.walk(one))


def of_comprehensions(node, old):
    """Return the ids of the names that comprehensions below a node bind."""
    result = set()
    for one in ast.walk(node):
        if isinstance(one, COMPREHENSIONS):
            targets = [n for part in one.generators for n in ast.walk(part.target)]
            if any(isinstance(n, ast.Name) and n.id == old for n in targets):
                first = {id(n) for n in ast.walk(one.generators[0].iter)}  # evaluated outside
                result |= {id(n) for n in ast.walk(one) if isinstance(n, ast.Name) and id(n) not in first}
    return result


def names_in(nodes):
    """Return every name that nodes bind or read."""
    result = set()
    for node in nodes:
        match node:
            case ast.Name(id=name) | ast.arg(arg=name):
                result.add(name)
            case ast.alias(name=name, asname=other):
                result.add((other or name).partition(".")[0])
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                result.add(name)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                result.add(name)
    return result


def bound_in_module(tree):
    """Return the names that a module binds outside of its functions and classes."""
    result, rest = set(), [*tree.body]
    while rest:
        node = rest.pop()
        if isinstance(node, (ast.ClassDef, *FUNCTIONS)):
            result.add(node.name)
            continue
        if isinstance(node, ast.Lambda | ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp):
            continue
        result |= names_in([node]) if not isinstance(node, ast.Name) or isinstance(node.ctx, ast.Store) else set()
        rest += ast.iter_child_nodes(node)
    return result


def found_names(tree, known, scope, old, new, has_comprehension_entry):
    """Return the nodes of a name in a scope; raise LookupError with the reason where it cannot be renamed."""
    node, around = known[scope.removesuffix("[]")]
    nodes = list(in_lambdas(tree, old)) if scope == "" else list(ast.walk(node))
    bound = of_comprehensions(node, old) if scope.endswith("[]") or has_comprehension_entry else set()
    found = [n for n in nodes if getattr(n, "id", None) == old or (isinstance(n, ast.arg) and n.arg == old)]
    found = [n for n in found if (id(n) in bound) == scope.endswith("[]")]
    if not found:
        raise LookupError(f"{old} does not occur")
    if new in names_in(nodes):
        raise LookupError(f"{new} means something else there")
    others = names_in(n for one in around for n in ast.walk(one)) if around else set()
    if new in others | bound_in_module(tree) | set(dir(builtins)) or keyword.iskeyword(new):
        raise LookupError(f"{new} would hide another name")
    return found


def found_attributes(node, old, new):
    """Return the nodes of an attribute below a class or function, of its field and its method too."""
    found = []
    for n in ast.walk(node):
        if isinstance(n, ast.Attribute) and n.attr == new:
            raise LookupError(f".{new} means something else there")
        if isinstance(n, ast.Attribute) and n.attr == old:
            found.append(n)
    for n in node.body if isinstance(node, ast.ClassDef) else ():
        if isinstance(n, ast.AnnAssign) and n.target.id == old:
            found.append(n.target)
        if isinstance(n, FUNCTIONS) and n.name == old:
            found.append(n)
        if getattr(getattr(n, "target", n), "id", getattr(n, "name", None)) == new:
            raise LookupError(f"{new} is another member")
    if not found:
        raise LookupError(f".{old} does not occur")
    return found


def found_keywords(node, old):
    """Return the keywords of calls in a function."""
    found = [n for n in ast.walk(node) if isinstance(n, ast.keyword) and n.arg == old]
    if not found:
        raise LookupError(f"{old}= does not occur")
    return found


def place_of(node, lines, old):
    """Return the line from 0 on and the byte at which the name of a node stands."""
    if isinstance(node, ast.Attribute):
        return node.end_lineno - 1, node.end_col_offset - len(old)
    if isinstance(node, FUNCTIONS):
        return node.lineno - 1, lines[node.lineno - 1].index(f"def {old}(".encode()) + len("def ")
    return node.lineno - 1, node.col_offset


def places_in_string(token, old, *, attribute):
    """Yield where a name stands in the expressions of an f-string; before Python 3.12 the tree does not say it."""
    text, depth, at = token.string, 0, 0
    name = re.compile(rf"(?<={'[.]' if attribute else '[^.A-Za-z0-9_]'}){old}(?![A-Za-z0-9_])")
    while at < len(text):
        if depth == 0 and text[at : at + 2] in ("{{", "}}"):
            at += 2
            continue
        depth += (text[at] == "{") - (text[at] == "}")
        if depth and name.match(text, at):
            before = text[:at].split("\n")
            start = token.start[1] if len(before) == 1 else 0
            line = token.line.split("\n")[len(before) - 1]
            yield token.start[0] - 1 + len(before) - 1, len(line[: start + len(before[-1])].encode())
            at += len(old)
        else:
            at += 1


def rename(text, tree, changes):
    """Return a file with some nodes renamed; `changes` are (node, old, new)."""
    lines = [line.encode() for line in text.split("\n")]
    strings = [n for n in ast.walk(tree) if isinstance(n, ast.JoinedStr)] if sys.version_info < (3, 12) else []
    outer = {}  # by the id of a node, the f-string that it stands in
    for string in strings:
        for n in ast.walk(string):
            outer.setdefault(id(n), string)
    tokens = [t for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type == tokenize.STRING]
    tokens = [t for t in tokens if "f" in re.match(r"\w*", t.string)[0].lower()]
    edits = {}
    for node, old, new in changes:
        if (string := outer.get(id(node))) is None:
            edits[place_of(node, lines, old)] = old.encode(), new.encode()
            continue
        for t in tokens:
            if string.lineno <= t.start[0] and t.end[0] <= string.end_lineno:
                for place in places_in_string(t, old, attribute=isinstance(node, ast.Attribute)):
                    edits[place] = old.encode(), new.encode()
    for (row, column), (old, new) in sorted(edits.items(), reverse=True):
        line = lines[row]
        assert line[column : column + len(old)] == old, (row, column, line)
        lines[row] = line[:column] + new + line[column + len(old) :]
    result = b"\n".join(lines).decode()
    for node, _, new in changes:
        key = {ast.Name: "id", ast.Attribute: "attr"}.get(type(node), "name" if isinstance(node, FUNCTIONS) else "arg")
        setattr(node, key, new)
    assert ast.dump(ast.parse(result)) == ast.dump(tree), "other things than the names would change"
    return result


def main(words):
    public, dry = "--public" in words, "--check" in words
    tables = {
        "name": NAMES + PUBLIC_NAMES * public,
        "attribute": ATTRIBUTES + PUBLIC_ATTRIBUTES * public,
        "keyword": KEYWORDS + PUBLIC_KEYWORDS * public,
    }
    by_file = defaultdict(list)
    for kind, table in tables.items():
        for file, scope, old, new in table:
            by_file[file].append((kind, scope, old, new))
    n_done, n_skipped, changed = 0, 0, set()

    def skip(*what):
        nonlocal n_skipped
        n_skipped += 1
        print("skipped:", *what)

    for file, entries in by_file.items():
        path = Path("deep", file)
        if not path.is_file():
            skip(path, "no such file")
            continue
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        known, changes = scopes(tree), []
        split = {(scope.removesuffix("[]"), old) for kind, scope, old, _ in entries if scope.endswith("[]")}
        for kind, scope, old, new in entries:
            if scope.removesuffix("[]") not in known:
                skip(path, scope, f"{old} -> {new}:", "no such scope")
                continue
            node = known[scope.removesuffix("[]")][0]
            try:
                if kind == "name":
                    found = found_names(tree, known, scope, old, new, (scope, old) in split)
                else:
                    found = found_keywords(node, old) if kind == "keyword" else found_attributes(node, old, new)
            except LookupError as error:
                skip(path, scope, f"{old} -> {new}:", *error.args)
                continue
            changes += [(n, old, new) for n in found]
            n_done += kind != "keyword"
        result = rename(text, tree, changes)
        for number, line in enumerate(result.split("\n"), start=1):
            if len(line) > 120 and line not in text.split("\n"):
                print(f"long: {path}:{number}: {len(line)} {line.strip()}")
        if changes:
            changed.add(str(path))
            if not dry:
                path.write_text(result, encoding="utf-8")
    for file, old, new in TEXTS + PUBLIC_TEXTS * public:
        path = Path(file)
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        if text.count(old) != 1:
            skip(path, f"{old!r} occurs {text.count(old)} times")
            continue
        changed.add(file)
        if not dry:
            path.write_text(text.replace(old, new), encoding="utf-8")
    print(f"{n_done} scopes renamed in {len(changed)} files, {n_skipped} entries skipped")


if __name__ == "__main__":
    main(sys.argv[1:])

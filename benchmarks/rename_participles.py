# ruff: noqa: C901, T201
"""Rename `known`, `wanted`, `told`, `seen` and other participles to nouns. Run in the root of a checkout.

    python rename_participles.py [--check]

Names of variables, parameters of functions whose name begins with `_` with the keywords of calls, type variables
and a few private attributes, all by the syntax tree; then the places in `mutants/house.json` that say the same line.
`--check` writes nothing. What cannot be renamed is skipped with a printed line. Run `ruff format` on what changed.
"""

import ast
import builtins
import io
import keyword
import re
import sys
import tokenize
from pathlib import Path

# A file below deep/, and under it: scope, old name, new name.
TABLE = """
_util/checks.py
  numbered known value
  percentile_interval known finite
_util/columns.py
  long_names said words
_util/entry_points.py
  find_entry_points refused refusals
_util/figures.py
  narrowed named titles
_util/frames.py
  Source._check_header seen names
  wide_table taken clash
_util/join.py
  LongSource._wide known has_cost
  LongSource._wide named strings
  LongSource._check_voters taken clash
  _merge known places
  _merge_values merged result
  _merge_families known family_rows
  read_answers known scale_of
  read_answers joined table
_util/names.py
  listed named text
  check_twins seen forms
_util/odds.py
  logit held probability
_util/scales.py
  scales_of chosen matches
calibration/_intervals.py
  _accuracy_interval drawn resamples
  paired_bootstrap drawn resamples
calibration/_metrics.py
  floor_of drawn draws
calibration/_reliability.py
  ReliabilityDisplay.plot held has_items
  wilson_interval held n_or_nan
  _draw_class chosen is_class
  CorpDisplay.from_predictions drawn resamples
cli.py
  _show_warning told texts
  _command known names
  help_text refused refusals
console/_arguments.py
  read_votes_and_scores known own_scales
  _provenance known voters
datasets/_judgments.py
  read_item_reasons wanted keys
  read_judgments wanted keys
  _rows wanted keys
  vote_details stored metadata
  file_metadata stored metadata
datasets/_labels.py
  join_labels joined all_labels
datasets/_origin.py
  read_texts wanted keys
datasets/_rows.py
  ParquetTable._rows_at_once wanted names
  ParquetTable._rows_at_once taken n_bytes
  ParquetTable.tables taken n_bytes
  ParquetTable._check taken n_bytes
datasets/_simulate.py
  fitted_cells stored document
datasets/_tables.py
  read_votes known by_name
  read_scores joined table
ensembles/_classifiers.py
  SVC._fit drawn draws
  _drawn drawn draws
ensembles/_encoding.py
  splits_of seen levels
ensembles/_label_models.py
  DawidSkene._fit voted has_votes
evaluate/_breakdowns.py
  own_families voted has_vote
  _bias known mask
  level_rows answered answer_rows
evaluate/_cards.py
  disagreements voted n_votes
evaluate/_compare.py
  earlier_votes known training
  _rate_before known entry
  DriftReport.tables moved has_moved
  drift_report moved suspects
evaluate/_contribution.py
  outer_worth chosen members
  outer_worth voted has_vote
evaluate/_panel_measures.py
  _voter_prices known group
  _worth known labeled_votes
  _doubtful voted n_votes
evaluate/_selective.py
  fit_report chosen recipe
  _members chosen recipe
evaluate/_verdict.py
  DecisionCounts.add voted has_votes
experiments/cognibench/_cognibench_tables.py
  score_turns chosen part_rows
  score_turns known decided_rows
  score_turns judged flag
  macro known numbers
  _rate named name
  sentences known fields
  tier_table judged label
  _labels judged label
  summary_text lost n_unaligned
experiments/cognibench/_generate.py
  _question known texts
  _rows said talk
experiments/cognibench/_methods.py
  _voted known with_vote
  _voted judged flags
  read_spans judged flags
experiments/cognibench/_runs.py
  _measured chosen matches
  _measured known names
  _fit known rows
  export left n_open
  export answered answers
  _files answered answers
  _write_labels judged basis
experiments/cognibench/_turns.py
  turns_of_split chosen result
  read_voted chosen judge
  read_voted known names
  classified known training_ids
  accuracy_of told hits
  in_split drawn quantile
experiments/fect/_command.py
  _plan named arguments
  _write drawn pictures
experiments/fect/_fect_report.py
  given_verdicts known items
  given_verdicts joined wide_tables
  given_verdicts made answers
  _tables_of joined tables
  printed_summary stored document
  _without_a_vote lost n_missing
  verdict_of judged basis
  pick_best known is_complete
  pick_best chosen rows
  consistency chosen judge_runs
  cells chosen rows
  _intervals chosen rows
  _wide chosen rows
  draw chosen by_metric
  _figure chosen rows
  ensemble_votes chosen ensemblers
experiments/few_datasets.py
  draws_of chosen training
  transfer_metrics held probability
  _reached known by_size
  few_verdict told sentences
  few_labels drawn draws
  _less found results
  _errors known numbers
  few_panel left one_class
  measurable left one_class
experiments/loo/_command.py
  _lines written files
  run found outputs
  run drawn repeats
experiments/loo/_model.py
  recommended_row chosen recipe
experiments/loo/_rivals.py
  with_scores known own_scales
  best_threshold known has_score
experiments/loo/_run.py
  leave_datasets_out named title
  _table known results
  loo chosen targets
  write_held_out held test_votes
  run_all found by_test
experiments/loo/_run_tables.py
  source_lengths known n_words
  _thirds known usable
  _reliability known labeled_rows
  _reliability moved caption
  _balanced_accuracies known intervals
  threshold_moves drawn noise
  draw_threshold_moves moved by_name
  published_baselines stored document
experiments/loo/_show.py
  summary known results
  _averaged known numbers
  mean_of known numbers
  _chains named usable
  _tests_of_several known rivals
experiments/paper/_show.py
  distances known pairs
  verdict_of known pairs
  verdict_of met agreement
  verdict_of judged basis
  claims moved claim
  table_lines chosen rows
  table_lines named tables
  side_by_side chosen rows
experiments/printed/_import.py
  _passages wanted fingerprint
  import_prompts made by_id
experiments/printed/_passages.py
  FoldedText.places_of known windows
  _is_alike wanted fingerprint
  _is_alike held n_inside
  _unverified wanted fingerprint
  _lay_out wanted fingerprint
  _lay_out said parts
  _places_of_breaks wanted fingerprint
  prints_of stored document
experiments/probe/_content.py
  _question known values
  _poison known document
  _read_facts known document
  split_articles wanted is_needed
  split_articles made n_samples
  _with_votes.voted counted tallies
  _with_votes.voted found candidates
experiments/probe/_probe_measures.py
  _counted known pairs
  _finding known pairs
  _finding wanted passage
  _finding answered n_answers
  _evaluation known pairs
  _is_known wanted passage
  equivalence_program left open_gold
  open_claims left open_gold
  choose_matcher named options
experiments/probe/_records.py
  _span wanted excerpt
  read_articles seen places
  chats seen keys
  statistics chosen task_samples
experiments/probe/_runs.py
  _write wanted options
  _evidence known values
  _evidence found by_model
  _wide known values
  _wide found by_model
  _bars drawn bars
  export written rows
  verdict_of known by_model
  verdict_of judged basis
  verdict_of_voters judged basis
experiments/stepwise/_stepwise_judge.py
  read_claims known texts
  _checked judged judgments
experiments/study.py
  draw_bars drawn all_axes
  printed_tables known data
  printed_beside chosen rows
  printed_beside drawn figures
experiments/tiered/_tiered_judges.py
  TieredJudge.read met outcomes
  TieredJudge.read answered tallies
  AutoLabelJudge.read known kind_of
  AutoLabelJudge.read met outcomes
  AutoLabelJudge._met met outcomes
experiments/tiered/_wording.py
  read_tags known forms
  read_tags said labels_at
  _by_position said labels_at
  TurnReading.judgment said verdict
  _pieces known tags
  SentenceVerdict.hallucinated known tier
  _shown chosen rows
features/_analysis.py
  analyze_votes voted has_vote
  _pair_sums voted has_vote
features/lexical/_facts.py
  Dates._judge known text_dates
integrations/batch/_api.py
  BatchRunner._listed.search wanted ids
  BatchRunner._listed.search seen remote_ids
  BatchRunner._attach lost orphans
  BatchRunner._create.create made remote
  BatchRunner._enter written writes
  _named answered response
integrations/batch/_files.py
  BatchImporter._decide known digests
  BatchExporter.run written writes
  BatchImporter._carry_out written writes
integrations/batch/_results.py
  FileResults.of chosen query
  FileResults.of answered is_answer
  FileResults._places answered is_answer
  mend_exports chosen query
  standing_of chosen query
  standing_of answered answer
  take_batches left condition
  take_batches chosen query
  adopt lost is_orphan
integrations/benchmarks.py
  read_aggrefact seen counts
  read_halueval chosen kinds
  read_llm_aggrefact seen counts
  _chosen drawn order
integrations/committee.py
  measure wanted metrics
  _cost known amounts
  Verdict.of made verdict
integrations/doctor.py
  _describe_rows told parts
  _compare known vote_ids
integrations/encoders/_encoder.py
  EmbeddingJudge.embed known all_pieces
  _pooling chosen modes
  _pooling known pooling_of
integrations/encoders/_encoder_judge.py
  NetworkJudge.details known facts
  NetworkJudge._set_version told facts
  PairJudge._judge known full_grids
  PairJudge._checked known scores
integrations/encoders/_heads.py
  _aligner known parameters
  _aligner named weights
integrations/encoders/_network.py
  Network.batches known parameters
  _placed chosen target
  _limit known limits
  _weights lost gaps
integrations/engines/_command.py
  run counted by_path
  _alike counted by_path
integrations/engines/_engine_tables.py
  _check_names seen forms
integrations/engines/_moments.py
  moments_of_cells wanted columns
  _cells seen distinct
  Moments.merge merged sums
integrations/foreign/_command.py
  run written paths
  _next written paths
integrations/foreign/_read.py
  _read known by_item
  _unknown known titles
  _items known fields
  _likeliest known fields
  _own_label known fields
  _Settled._once seen by_judge
  _Settled._check known scale_names
  _Settled._check seen counts
  _Settled._check told sample
  _Settled._tell known judges
  _examples seen counts
  Foreign.write made metadata
  Foreign.write written paths
  _table_columns taken guesses
integrations/foreign/_tools.py
  ForeignOptions.words known vote_of
  Tool.fits known fields
  _has known fields
  _parquet_rows told metadata
  _parquet_rows named texts
  _inspect_samples wanted fields
  _answer known fields
  _answer chosen keys
  question_of known fields
  column_roles taken guesses
  _is_answer_column known role_name
integrations/forget/__init__.py
  run lost is_orphan
integrations/gate.py
  junit told attributes
  gate_cases moved reasons
integrations/labeling/_desk.py
  LabelDesk._next left open_items
  LabelDesk._next held current
  LabelDesk._progress wanted n_people
  open_label_desk seen book
  _plan left n_rest
  _plan wanted events
integrations/labeling/_label_book.py
  read_annotation_rows seen keys
  AnswerBook.add seen after_reveal
  keep_other_labels told remarks
  _kept known keys
integrations/labeling/_label_log.py
  LabelLog._write held n_rows
  open_label_log told notes
  read_label_log told notes
  _merged told notes
  _merged merged events
  _merged refused refusal
  _read_lines merged events
integrations/labeling/_subject.py
  LabelSubject.expected_error known labeled_rows
  LabelSubject._joined joined all_labels
  LabelFolder.check taken files
  export_labels told notes
  labeled_lines seen phrase
integrations/pack/__init__.py
  run left note
  _copy told metadata
  _replies chosen query
  _replies named judges
  _replies told answer
integrations/pairs/_command.py
  run joined panel
  run made metadata
  _held_out_lines joined both_orders
integrations/pairs/_pairs.py
  read_pairs seen keys
  join_orders named judges
  rank_systems known matches
  rank_systems drawn samples
integrations/postgresql.py
  PostgresqlDatabase.live_runs held query
integrations/sequential/_one_by_one.py
  _mean known by_name
  OneByOne.run known offline
  OneByOne._programs known offline
  OneByOne._program known offline
  OneByOne._program judged judgments
  OneByOne._scored known offline
  OneByOne._scored judged rows
  OneByOne._score judged by_column
  OneByOne._offline judged answers
  _votes judged by_column
  _prices known in_usd
integrations/sequential/_policy.py
  AskingPolicy.learn chosen actions
  _distribution seen joint
  _solve chosen actions
integrations/serve/_app.py
  watch told reply
  create_app.describe told changes
  create_app.healthz told extra
  _checked told bodies
  _scored moved suspects
integrations/serve/_checker.py
  answers_of told passages
  contract known schemas
  contract answered answer
  Checker._worked_out told answers
  _pair left is_empty
integrations/serve/_exchange.py
  RequestBody.drop left n_bytes
  GuardedResponse._missing known values
integrations/serve/_guard.py
  _same wanted token
  Guard._pass_on held n_bytes
integrations/serve/_live.py
  _Turn._ask known futures
integrations/serve/_run.py
  run_server lost loss
llm/_errors.py
  _words found match
llm/_writer.py
  Writer._execute moved place
model/_average.py
  AnswerMap.fit answered has_answer
  _moments answered has_answer
  _ranks answered has_answer
model/_blend.py
  _area answered has_answer
model/_consensus.py
  _abstention voted n_votes
model/_drift.py
  _rates voted mask
  _agreement voted has_vote
  vote_rates voted has_vote
model/_files.py
  _check_refit stored file_p
model/_share.py
  _SystemItems.design chosen mask
model/_training.py
  row_folds held test_rows
  TrainingSet.table merged cell_weights
model/stack.py
  Stack.fit_rows held tests
  Stack._judge held tests
  _fit_form held tests
  fit_shared left group
prompt_pool/_answer_form.py
  AnswerForm.verdicts_in known answers
prompt_pool/_locate.py
  merge_spans merged result
prompt_pool/_material.py
  Material.echoes held is_inside
  _same_document named same_id
  _codes joined whole
prompt_pool/_prompt_judge.py
  pool_judgments voted votes
  sums answered answers
prompt_pool/_reader.py
  tables named columns
  _own_answer named values
  _loose_object named has_key
  ReplyReader._stated known answers
  ReplyReader._read named value
prompt_pool/_sayings.py
  one_of known alternatives
  one_of named names
  _expanded known parts
  Vocabulary.cues named is_name
  vocabulary known value_of
  explains named names_other
  _statement named wholes
records.py
  VoteMatrix._check named groups
  VoteMatrix.with_answers known own_scales
  _check_partial_labels known is_labeled
  _first_repeated seen distinct
report/_chapters.py
  _of_runs chosen recipe
  prior_chapter told estimate
  prior_chapter drawn bars
  reliability_chapter seen reason
  _correlation known correlations
report/_items.py
  item_columns voted has_votes
  TextColumns.values known has_claims
  _passage known fields
  _sentences judged count
report/_sources.py
  ReportMaterial.learned_from known training_names
  score_by known own_prior
  _check_whole left stack
  _of_model known extras
report/_verdict.py
  _of_items known is_labeled
  methods_chapter wanted has_row
  verdict_of known training_names
  _badges seen names
  _elsewhere known kind
"""

# Type variables: (file below deep/, old, new); the name in TypeVar("...") follows.
TYPE_VARIABLES = [
    ("console/_processes.py", "Given", "Task"),
    ("console/_processes.py", "Found", "Result"),
    ("model/_training.py", "Given", "Task"),
    ("model/_training.py", "Found", "Result"),
]

# Private attributes: (file below deep/, old, new), everywhere in the file.
ATTRIBUTES = [
    ("integrations/inspect_files.py", "_seen", "_item_ids"),
    ("integrations/labeling/_label_log.py", "_left", "_states"),
]

# A mutant finds its place by this text: (in mutants/house.json, then), each in the line before and after the change.
MUTANTS = [
    ("    known = bool((dollars[llm_columns]", "    in_usd = bool((dollars[llm_columns]"),
    ("(drawn < share) == (split ==", "(quantile < share) == (split =="),
    ("if len(chosen) > 1 or chosen[0] not in known:", "if len(modes) > 1 or modes[0] not in pooling_of:"),
    ("if len(chosen) > 2 or chosen[0] not in known:", "if len(modes) > 2 or modes[0] not in pooling_of:"),
    ("core != label and (known.get(core) ==", "core != label and (value_of.get(core) =="),
    ("text.places_of(wanted.windows[", "text.places_of(fingerprint.windows["),
    ('{\\"method\\": chosen[0][\\"method\\"], ', '{\\"method\\": matches[0][\\"method\\"], '),
    ('told, \\"judge\\": named.pop(),', 'answer, \\"judge\\": judges.pop(),'),
]

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def entries():
    """Return (scope, old, new) of each file."""
    result, file = {}, ""
    for line in TABLE.strip("\n").split("\n"):
        if line.startswith(" "):
            result[file].append(line.split())
        else:
            file = line
            result[file] = []
    return result


def scopes(tree):
    """Return the classes and functions of a file by qualified name, each with the classes and functions around it."""
    result = {}

    def walk(node, name, around):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.ClassDef, *FUNCTIONS)):
                own = f"{name}.{child.name}".lstrip(".")
                result.setdefault(own, []).append((child, around))
                walk(child, own, [*around, child])
            else:
                walk(child, name, around)

    walk(tree, "", [])
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
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                result.add(name)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                result.update(names)
    return result


def bound_in_module(tree):
    """Return the names that a module binds outside of its functions and classes."""
    result, rest = set(), [*tree.body]
    while rest:
        node = rest.pop()
        if isinstance(node, (ast.ClassDef, *FUNCTIONS)):
            result.add(node.name)
        elif not isinstance(node, (ast.Lambda, *COMPREHENSIONS)):
            result |= names_in([node]) if not isinstance(node, ast.Name) or isinstance(node.ctx, ast.Store) else set()
            rest += ast.iter_child_nodes(node)
    return result


def name_of_call(node):
    """Return the last name of what is called, or of the function that a partial takes."""
    function = node.func
    if getattr(function, "id", getattr(function, "attr", "")) == "partial" and node.args:
        function = node.args[0]
    return getattr(function, "id", getattr(function, "attr", ""))


def nodes_of(tree, places, old, new, calls):
    """Return the nodes of a name; raise LookupError with the reason where it cannot be renamed."""
    if len(places) != 1:
        raise LookupError(f"there are {len(places)} scopes of this name")
    node, around = places[0]
    nodes = list(ast.walk(node))
    result = [n for n in nodes if old in (getattr(n, "id", None), n.arg if isinstance(n, ast.arg) else None)]
    inner = [n for n in nodes if n is not node and isinstance(n, FUNCTIONS) and old in names_in(ast.walk(n.args))]
    if not any(isinstance(n, ast.arg) or isinstance(n.ctx, ast.Store) for n in result) or inner:
        raise LookupError(f"{old} is not a variable of this scope alone")
    for n in nodes:
        match n:
            case ast.Global(names=names) | ast.Nonlocal(names=names) if old in names:
                raise LookupError(f"{old} is a variable of another scope")
            case ast.MatchAs(name=name) | ast.MatchStar(name=name) | ast.ExceptHandler(name=name) if name == old:
                raise LookupError(f"{old} is bound by a pattern")
    if new in names_in(nodes):
        raise LookupError(f"{new} means something else there")
    outer = names_in(n for one in around if isinstance(one, FUNCTIONS) for n in ast.walk(one))
    if new in outer | bound_in_module(tree) | set(dir(builtins)) or keyword.iskeyword(new):
        raise LookupError(f"{new} would hide another name")
    if old in names_in(ast.walk(node.args)):
        is_method = around and isinstance(around[-1], ast.ClassDef)
        is_private = node.name.startswith("_") and not node.name.endswith("__")
        if not is_private and not (is_method and around[-1].name.startswith("_")):
            raise LookupError(f"{old} is a public parameter")
        if old in re.findall(r"\w+", ast.get_docstring(node) or ""):
            raise LookupError(f"the docstring says {old}")
        for path, call in calls:
            if name_of_call(call) == node.name:
                keywords = [k for k in call.keywords if k.arg == old]
                if keywords and path is not None:
                    raise LookupError(f"{path} calls it with {old}=")
                result += keywords
    return result


def nodes_in_file(tree, old, new):
    """Return the nodes of a type variable or of a private attribute."""
    nodes = list(ast.walk(tree))
    if new in names_in(nodes) | {n.attr for n in nodes if isinstance(n, ast.Attribute)}:
        raise LookupError(f"{new} means something else there")
    result = [n for n in nodes if old in (getattr(n, "id", None), getattr(n, "attr", None))]
    result += [n for n in nodes if isinstance(n, FUNCTIONS) and n.name == old]
    variables = [n for n in nodes if isinstance(n, ast.Call) and name_of_call(n) == "TypeVar"]
    return result + [n.args[0] for n in variables if n.args[0].value == old]


def places_in_string(token, old):
    """Yield where a name stands in the expressions of an f-string; before Python 3.12 the tree does not say it."""
    text, depth, at = token.string, 0, 0
    name = re.compile(rf"(?<=[^.A-Za-z0-9_]){old}(?![A-Za-z0-9_])")
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


def place_of(node, lines, old):
    """Return the line from 0 on and the byte at which the name of a node stands."""
    if isinstance(node, ast.Attribute):
        return node.end_lineno - 1, node.end_col_offset - len(old)
    if isinstance(node, FUNCTIONS):
        return node.lineno - 1, lines[node.lineno - 1].index(f"def {old}(".encode()) + len("def ")
    return node.lineno - 1, node.col_offset + isinstance(node, ast.Constant)


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
                for place in places_in_string(t, old):
                    edits[place] = old.encode(), new.encode()
    for (row, column), (old, new) in sorted(edits.items(), reverse=True):
        line = lines[row]
        assert line[column : column + len(old)] == old, (row, column, line)
        lines[row] = line[:column] + new + line[column + len(old) :]
    result = b"\n".join(lines).decode()
    for node, _, new in changes:
        keys = {ast.Name: "id", ast.Constant: "value", ast.Attribute: "attr"} | dict.fromkeys(FUNCTIONS, "name")
        setattr(node, keys.get(type(node), "arg"), new)
    assert ast.dump(ast.parse(result)) == ast.dump(tree), "other things than the names would change"
    return result


def changes_of(file, tree, todo, calls):
    """Return (node, old, new) of a file, how many entries they are, and how many are skipped."""
    places, changes, new_names, n_skipped = scopes(tree), [], set(), 0
    for scope, old, new in todo:
        try:
            nodes = nodes_of(tree, places.get(scope, []), old, new, calls) if scope else nodes_in_file(tree, old, new)
        except LookupError as error:
            nodes, reason = [], error.args[0]
        else:
            reason = f"{new} is another new name" if (scope, new) in new_names else ""
        if reason:
            n_skipped += 1
            print(f"skipped: {file} {scope} {old} -> {new}: {reason}")
            continue
        new_names.add((scope, new))
        changes += [(n, old, new) for n in nodes]
    return changes, len(todo) - n_skipped, n_skipped


def main(words):
    """Rename, and say how much."""
    table, whole = entries(), [*TYPE_VARIABLES, *ATTRIBUTES]
    trees = {p: ast.parse(p.read_text(encoding="utf-8")) for top in ("deep", "tests") for p in Path(top).rglob("*.py")}
    calls = [(path, n) for path, tree in trees.items() for n in ast.walk(tree) if isinstance(n, ast.Call)]
    n_scopes = n_uses = n_skipped = n_files = 0
    for file in sorted({*table, *(file for file, _, _ in whole)}):
        path = Path("deep", file)
        text, tree = path.read_text(encoding="utf-8"), trees[path]
        todo = [*table.get(file, []), *(("", old, new) for of, old, new in whole if of == file)]
        calls_here = [(None if of == path else of, call) for of, call in calls]
        changes, n_done, n_without = changes_of(file, tree, todo, calls_here)
        n_scopes, n_uses, n_skipped = n_scopes + n_done, n_uses + len(changes), n_skipped + n_without
        n_files += bool(changes)
        result = rename(text, tree, changes)
        for number, line in enumerate(result.split("\n"), start=1):
            if len(line) > 120 and line not in text.split("\n"):
                print(f"long: {path}:{number}: {len(line)} {line.strip()}")
        if "--check" not in words:
            path.write_text(result, encoding="utf-8")
    sample = Path("benchmarks/mutants/house.json")
    text = sample.read_text(encoding="utf-8")
    for old, new in MUTANTS:
        if old not in text:
            print(f"skipped: {sample}: no {old!r}")
        text = text.replace(old, new)
    if "--check" not in words:
        sample.write_text(text, encoding="utf-8")
    print(f"{n_uses} uses in {n_scopes} scopes of {n_files} files renamed, {n_skipped} entries skipped")


if __name__ == "__main__":
    main(sys.argv[1:])

"""Fine-tuning on a tiny model with random weights: it learns, it resumes exactly, it is written whole, it judges.

What the model learns here is to give one and the same verdict; what is shown is the way from chat JSONL to a vote.
"""

import builtins
import contextlib
import json
import os
import sys
from hashlib import sha256
from pathlib import Path

import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import SFTTrainer

from deep.cli import main as deep_main
from deep.exceptions import InputError, MissingDependencyError
from deep.experiments.finetune._train import Chat, TrainSettings, read_chats, settings_for, turns_of
from deep.prompt_pool import load_prompt
from tests.deep_commands import finetune as main
from tests.deep_commands import votes
from tests.experiments.tiny_models import save_causal
from tests.model_server import serving

REPLY = "VERDICT: YES"
QUICK = ["--epochs", "4", "--batch-size", "2", "--learning-rate", "0.02"]


def chat(*texts):
    """Return one line of data: user and assistant in turn."""
    roles = ("user", "assistant") * len(texts)
    return json.dumps({"messages": [{"role": r, "content": t} for r, t in zip(roles, texts, strict=False)]})


def write_lines(path, lines):
    """Write lines to a file and return its path."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a base model and training data for the prompt yes-no."""
    folder = tmp_path_factory.mktemp("finetune")
    save_causal(folder / "base")
    prompt = load_prompt("yes-no")
    lines = [
        {"messages": [*prompt.render(f"Dam {i} broke.", f"Water {i} ran."), {"role": "assistant", "content": REPLY}]}
        for i in range(32)
    ]
    write_lines(folder / "sft.jsonl", map(json.dumps, lines))
    write_lines(folder / "short.jsonl", [chat(f"Is {i} odd?", "yes" if i % 2 else "no") for i in range(12)])
    return folder


def tune(folder, out, *options, data="sft.jsonl", base="base"):
    """Run the command in the folder's names."""
    return main(["--data", str(folder / data), "--base", str(folder / base), "--out", str(out), *options])


@pytest.fixture(scope="module")
def tuned(folder):
    """Return the folder of the model after training."""
    assert tune(folder, folder / "tuned", *QUICK) == 0
    return folder / "tuned"


def results(out):
    """Return what the run wrote of itself."""
    return json.loads((out / "results.json").read_text())


def test_the_loss_falls_and_all_is_written(folder, tuned):
    """Model, tokenizer, settings, data hash and one loss a step; no place of this machine; no checkpoint left."""
    told = results(tuned)
    losses = [entry["loss"] for entry in told["losses"]]
    assert losses[-1] < 0.2 < 4 < losses[0]
    assert [entry["step"] for entry in told["losses"]] == list(range(1, 65))
    assert told["data"] == {"file": "sft.jsonl", "sha256": sha256((folder / "sft.jsonl").read_bytes()).hexdigest()}
    assert told["replies"] == {"read": 32, "too_long": 0, "used": 32}
    assert (told["base"], told["method"], told["settings"]["learning_rate"]) == ("base", "full", 0.02)
    assert {"torch", "trl", "transformers"} <= set(told["versions"])
    names = {path.name for path in tuned.iterdir()}
    assert {"model.safetensors", "config.json", "tokenizer.json", "chat_template.jinja"} <= names
    assert not [path for path in tuned.iterdir() if str(folder).encode() in path.read_bytes()]
    assert not (folder / "tuned-checkpoints").exists()


def test_the_loss_is_that_of_the_reply(folder, tuned):
    """The first loss, before any step, is the mean negative log-likelihood of the reply's tokens, by hand."""
    tokenizer = AutoTokenizer.from_pretrained(folder / "base")
    model = AutoModelForCausalLM.from_pretrained(folder / "base").eval()
    messages = read_chats(folder / "sft.jsonl")[0].messages
    whole = tokenizer.apply_chat_template(list(messages), return_tensors="pt", return_dict=True)["input_ids"]
    before = tokenizer.apply_chat_template(list(messages[:-1]), add_generation_prompt=True, return_dict=True)
    labels = whole.clone()
    labels[0, : len(before["input_ids"])] = -100
    assert (labels != -100).sum() == len(f"{REPLY}") + 1  # a token a byte, and the end
    with torch.no_grad():
        expected = model(input_ids=whole, labels=labels).loss.item()
    # All replies are alike and random weights hardly see what is before them.
    assert results(tuned)["losses"][0]["loss"] == pytest.approx(expected, abs=0.02)


def ask(folder, out, url):
    """Ask a served model through the call layer; return its votes and its reasons."""
    examples = write_lines(
        folder / "news.csv", ["source,claim", *(f"Dam {i} held.,Water {i} rose." for i in range(90, 93))]
    )
    options = ["--prompt", "yes-no", "--llm", "tuned", "--base-url", url, "--out", str(out / "v.parquet")]
    status = votes([str(examples), *options])
    found = pd.read_parquet(out / "v.parquet")
    return status, found.iloc[:, -1].tolist(), pd.read_parquet(out / "v.reasons.parquet")["reason"].tolist()


def test_the_tuned_model_judges(folder, tuned, tmp_path, monkeypatch, capsys):
    """Reloaded and served, it votes through `deep votes`; before the training the same model gave no verdict."""
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    for name, expected in (("before", (1, [None] * 3, 3)), ("after", (0, [1, 1, 1], 0))):
        (tmp_path / name).mkdir()
        with serving(tuned if name == "after" else folder / "base") as url:
            status, found, reasons = ask(folder, tmp_path / name, url)
        assert (status, [None if pd.isna(vote) else vote for vote in found], len(reasons)) == expected
        assert set(reasons) <= {"truncated", "unparsable"}


@pytest.mark.parametrize("method", [[], pytest.param(["--lora", "--lora-rank", "4"], marks=pytest.mark.slow)])
def test_resuming_continues_exactly(folder, tmp_path, monkeypatch, capsys, method):
    """Interrupted and resumed, it ends where the uninterrupted run ends: every loss and every weight."""
    options = ["--epochs", "2", "--batch-size", "3", "--learning-rate", "0.01", "--save-every", "2", *method]
    assert tune(folder, tmp_path / "whole", *options, data="short.jsonl") == 0
    step, calls = SFTTrainer.training_step, []

    def interrupted(self, *given, **named):
        calls.append(1)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return step(self, *given, **named)

    monkeypatch.setattr(SFTTrainer, "training_step", interrupted)
    assert tune(folder, tmp_path / "parts", *options, data="short.jsonl") == 130
    assert "--resume goes on from" in capsys.readouterr().err
    assert not (tmp_path / "parts").exists()
    (tmp_path / "parts-checkpoints" / "checkpoint-5").mkdir()  # half-written: it has no state, so it does not count
    assert tune(folder, tmp_path / "parts", *options, "--resume", data="short.jsonl") == 0
    assert len(calls) == 6 + 4  # steps 5 to 8 alone
    assert results(tmp_path / "parts")["losses"] == results(tmp_path / "whole")["losses"]
    parts, whole = (load_file(tmp_path / name / "model.safetensors") for name in ("parts", "whole"))
    assert parts.keys() == whole.keys()
    assert all(torch.equal(parts[name], whole[name]) for name in whole)


def test_lora_is_merged(folder, tmp_path):
    """The folder holds a whole model: layers have moved, embeddings have not, and no adapter is needed."""
    assert tune(folder, tmp_path / "out", "--lora", "--epochs", "1", "--learning-rate", "0.01", data="short.jsonl") == 0
    before, after = load_file(folder / "base" / "model.safetensors"), load_file(tmp_path / "out" / "model.safetensors")
    assert before.keys() == after.keys()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert "model.layers.0.self_attn.q_proj.weight" in changed
    assert not {"model.embed_tokens.weight", "lm_head.weight"} & changed
    assert results(tmp_path / "out")["method"] == "lora"
    assert not list((tmp_path / "out").glob("adapter*"))


def test_presets_are_what_the_papers_state():
    """PROBE's learning rate, Adam and schedule; CogniBench's epochs, batch and rate; options come over them."""
    probe, cognibench = settings_for("probe", {}), settings_for("cognibench", {"epochs": None, "seed": 7})
    assert (probe.learning_rate, probe.beta1, probe.beta2) == (2e-5, 0.9, 0.999)
    assert (probe.schedule, probe.warmup) == ("cosine", 0.02)
    assert (cognibench.epochs, cognibench.batch_size, cognibench.learning_rate, cognibench.seed) == (3, 2, 5e-5, 7)
    assert settings_for("probe", {"learning_rate": 1e-4}).learning_rate == 1e-4
    assert settings_for(None, {}) == TrainSettings()


def test_presets_reach_the_trainer(folder, tmp_path, capsys):
    """The learning rate rises and falls as stated, and the record says which settings are the paper's."""
    options = ["--preset", "probe", "--epochs", "1", "--batch-size", "2", "--warmup", "0.5", "--json"]
    assert tune(folder, tmp_path / "out", *options, data="short.jsonl") == 0
    told = results(tmp_path / "out")
    rates = [entry["learning_rate"] for entry in told["losses"]]
    assert rates == pytest.approx([0, 2e-5 / 3, 4e-5 / 3, 2e-5, 1.5e-5, 0.5e-5], abs=1e-9)
    assert told["settings"]["stated_by_paper"] == ["beta1", "beta2", "learning_rate", "schedule", "warmup"]
    said = json.loads(capsys.readouterr().out)
    assert (said["steps"], said["replies"]["used"]) == (6, 12)


def test_every_reply_is_learned():
    """A conversation of two replies is two examples, each with all that was said before."""
    messages = [{"role": r, "content": c} for r, c in zip(("user", "assistant") * 2, "abcd", strict=True)]
    first, second = turns_of(Chat(1, tuple(messages)))
    assert (first.prompt, first.completion) == (messages[:1], messages[1:2])
    assert (second.prompt, second.completion) == (messages[:3], messages[3:])


def test_long_conversations_are_left_out_whole(folder, tmp_path, capsys):
    """They are counted, never cut; where nothing fits, nothing is trained."""
    write_lines(tmp_path / "d.jsonl", [chat("Odd?", "yes"), chat("x" * 300, "no"), chat("Even?", "no")])
    options = ["--epochs", "1", "--max-length", "100"]
    assert tune(folder, tmp_path / "out", *options, data=tmp_path / "d.jsonl") == 0
    assert results(tmp_path / "out")["replies"] == {"read": 3, "too_long": 1, "used": 2}
    assert "2 replies (1 too long)" in capsys.readouterr().out
    assert tune(folder, tmp_path / "none", "--max-length", "5", data=tmp_path / "d.jsonl") == 2
    assert "at least one reply to learn from. Got 5, and all are longer" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "a JSON object a line. Got '{' at .*bad.jsonl, line 2, the line"),
        ("[" * 100_000, "a JSON object a line"),
        ("[1]", "Got list at .*, line 2, the line"),
        ('{"text": "x"}', "a list of messages. Got None at .*, line 2, key messages"),
        ('{"messages": []}', "a list of messages. Got "),
        ('{"messages": ["x"]}', r"role and content in every message.* Got 'x' at .*, line 2, key messages\[0\]"),
        ('{"messages": [{"role": "user"}]}', r"Got \['role'\] at"),
        ('{"messages": [{"role": "user", "content": "a", "name": "b"}]}', r"Got \['content', 'name', 'role'\]"),
        (
            '{"messages": [{"role": "bot", "content": "a"}]}',
            r"one of assistant, system, user .* Got 'bot' .*\[0\].role",
        ),
        ('{"messages": [{"role": "user", "content": " "}]}', r"not empty as content. Got ' ' at .*\[0\].content"),
        (
            '{"messages": [{"role": "user", "content": 1}]}',
            r"as content. Got 1 at .*, line 2, key messages\[0\].content",
        ),
        ('{"messages": [{"role": "user", "content": "\\ud800"}]}', "whole characters"),
        (chat("a", "b", "c"), r"an assistant's reply at the end. Got 'user' at .*, line 2, key messages\[2\].role"),
        (chat("a", "b").replace('"assistant"', '"system"'), r"\(system first\) as role. Got 'system'"),
    ],
)
def test_faulty_lines(tmp_path, line, message):
    """The error names file, line and key."""
    path = write_lines(tmp_path / "bad.jsonl", [chat("a", "b"), line])
    with pytest.raises(InputError, match=message) as error:
        read_chats(path)
    assert "\n" not in str(error.value)


KEYS = st.sampled_from(["messages", "role", "content"])
VALUES = st.recursive(
    st.sampled_from(["user", "assistant", "", 1, None]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner),
    max_leaves=8,
)


@given(st.one_of(st.binary(max_size=60), VALUES.map(lambda value: json.dumps(value).encode())))
def test_any_file_is_read_or_refused(tmp_path_factory, content):
    """Nothing but an InputError comes of bytes that are no training data."""
    path = tmp_path_factory.mktemp("any") / "data.jsonl"
    path.write_bytes(content)
    chats = []
    with contextlib.suppress(InputError):
        chats = read_chats(path)
    assert all(chat.messages[-1]["role"] == "assistant" for chat in chats)


def test_files_that_are_no_data(folder, tmp_path, capsys):
    """Missing, a folder, empty, other bytes: one line, status 2, nothing written."""
    (tmp_path / "empty.jsonl").write_text("\n\n")
    (tmp_path / "latin.jsonl").write_bytes(chat("a", "b").encode() + b"\n\xe9\n")
    for name, message in (
        ("none.jsonl", "No such file"),
        (".", "`data` must be a file. Got the folder"),
        ("empty.jsonl", "at least one conversation"),
        ("latin.jsonl", "must be UTF-8"),
    ):
        assert tune(folder, tmp_path / "out", data=tmp_path / name) == 2
        said = capsys.readouterr().err
        assert said.startswith("error: `data`")
        assert said.count("\n") == 1
        assert message in said
    assert not (tmp_path / "out").exists()


def test_models_that_cannot_be_tuned(folder, tmp_path, monkeypatch, capsys):
    """No template (unless one is given), no model, weights that are missing or are no numbers."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    save_causal(tmp_path / "plain", template=None)
    (tmp_path / "nothing").mkdir()
    save_causal(tmp_path / "nan")
    weights = load_file(tmp_path / "nan" / "model.safetensors")
    weights["lm_head.weight"].fill_(float("nan"))
    save_file(weights, tmp_path / "nan" / "model.safetensors", {"format": "pt"})
    save_causal(tmp_path / "less")
    save_file(
        {k: v for k, v in weights.items() if "mlp" not in k}, tmp_path / "less" / "model.safetensors", {"format": "pt"}
    )
    for name, message in (
        ("plain", "Give --chat-template FILE"),
        ("nothing", "must be a causal language model that transformers loads"),
        ("owner/nothing-here", "must be a causal language model that transformers loads"),
        ("less", "which lacks 'model.layers.0.mlp"),
        ("nan", "`loss` must stay a finite number. Got nan at step 1."),
    ):
        base = tmp_path / name if "owner" not in name else name
        capsys.readouterr()
        status = main(["--data", str(folder / "short.jsonl"), "--base", str(base), "--out", str(tmp_path / "out")])
        said = capsys.readouterr().err
        assert (status, said.count("\n"), message in said) == (2, 1, True), said
        assert not (tmp_path / "out").exists()


def test_a_template_can_be_given(folder, tmp_path, capsys):
    """A base without one learns with the template of a file, which goes along with the tuned model."""
    save_causal(tmp_path / "plain", template=None)
    template = write_lines(tmp_path / "chat.jinja", ["{% for m in messages %}{{ m['content'] }}</s>{% endfor %}"])
    options = ["--chat-template", str(template), "--epochs", "1"]
    assert tune(folder, tmp_path / "out", *options, data="short.jsonl", base=tmp_path / "plain") == 0
    assert AutoTokenizer.from_pretrained(tmp_path / "out").chat_template == template.read_text()
    template.write_text("{{ raise_exception('roles must alternate') }}")
    assert tune(folder, tmp_path / "no", *options, data="short.jsonl", base=tmp_path / "plain") == 2
    assert "the chat template of the base model. Got line 1: roles must alternate" in capsys.readouterr().err
    assert tune(folder, tmp_path / "no", "--chat-template", str(tmp_path), data="short.jsonl") == 2
    assert "`chat-template` must be a file. Got the folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--epochs", "0"], "`epochs` must be above 0"),
        (["--epochs", "1e308"], "`epochs` must be above 0, up to 10,000"),
        (["--epochs", "nan"], "`epochs` must be above 0"),
        (["--batch-size", "0"], "`batch_size` must be from 1 to 1,000,000"),
        (["--batch-size", "1" + "0" * 30], "`batch_size` must be from 1 to 1,000,000"),
        (["--lora", "--lora-rank", "1000000000"], "`lora_rank` must be from 1 to 65,536"),
        (["--learning-rate", "1"], "`learning_rate` must be above 0 and below 1"),
        (["--beta2", "1"], r"`beta2` must be in [0, 1)"),
        (["--warmup", "1.5"], r"`warmup` must be in [0, 1)"),
        (["--save-every", "0"], "`save-every` must be at least 1"),
        (["--max-length", "0"], "`max_length` must be at least 1"),
        (["--seed", "-1"], "`seed` must be from 0"),
        (["--resume"], "`resume` must find a checkpoint. Got none in"),
    ],
)
def test_options(folder, tmp_path, capsys, options, message):
    """Each is checked before anything is trained or written."""
    assert tune(folder, tmp_path / "out", *options, data="short.jsonl") == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_schedule_in_python():
    """The command's choices are checked by argparse; in Python the class checks them."""
    with pytest.raises(InputError, match=r"`schedule` must be one of constant, cosine, linear. Got 'steep'"):
        TrainSettings(schedule="steep")


def test_folders_are_not_mixed_up(folder, tmp_path, capsys):
    """Another's files are not replaced, another run's checkpoints are not resumed, a started run is not restarted."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    assert tune(folder, tmp_path / "mine", data="short.jsonl") == 2
    assert "must be a new folder or an earlier run" in capsys.readouterr().err
    assert tune(folder, tmp_path / "out", "--checkpoints", str(tmp_path / "mine"), data="short.jsonl") == 2
    assert "`checkpoints` must be a new or empty folder" in capsys.readouterr().err
    started = tmp_path / "out-checkpoints" / "checkpoint-3"
    started.mkdir(parents=True)
    (started / "trainer_state.json").write_text("{}")
    (started.parent / "run.json").write_text('{"method": "full"}')
    assert tune(folder, tmp_path / "out", data="short.jsonl") == 2
    assert "Add --resume, or remove it." in capsys.readouterr().err
    assert tune(folder, tmp_path / "out", "--resume", data="short.jsonl") == 2
    said = capsys.readouterr().err
    assert "must go on with the same run. Got another base, chat_template_sha256, command, data," in said
    assert "method" not in said


def test_without_the_libraries(folder, tmp_path, monkeypatch, capsys):
    """The error says what to install."""
    real = builtins.__import__

    def no_trl(name, *rest, **options):
        if name == "trl":
            raise ImportError("No module named 'trl'")
        return real(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", no_trl)
    assert tune(folder, tmp_path / "out", data="short.jsonl") == 2
    assert "Run: pip install 'deep-judges[train]'." in capsys.readouterr().err
    assert issubclass(MissingDependencyError, ImportError)


def test_help(capsys):
    """`deep finetune --help` has examples."""
    with pytest.raises(SystemExit) as ended:
        deep_main(["finetune", "--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert "transformers serve tuned" in said
    assert "(default: 2e-05)" in said


@pytest.mark.skipif(not os.environ.get("DEEP_PEERS"), reason="set DEEP_PEERS=1 to drive real servers")
def test_the_tuned_model_judges_through_transformers_serve(folder, tuned, tmp_path, monkeypatch):
    """A server that nobody here wrote loads the folder, and `deep votes` gets its votes."""
    pytest.importorskip("fastapi")
    pytest.importorskip("uvicorn")
    from tests.llm.test_real_peers import _free_port, _serve

    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    port = _free_port()
    command = [Path(sys.executable).with_name("transformers"), "serve", tuned, "--device", "cpu", "--port", str(port)]
    running = _serve(command, f"http://127.0.0.1:{port}/health", {"HF_HUB_OFFLINE": "1"}, tmp_path / "log")
    next(running)
    try:
        examples = write_lines(tmp_path / "news.csv", ["source,claim", "Dam 90 held.,Water 90 rose."])
        options = ["--prompt", "yes-no", "--llm", str(tuned), "--base-url", f"http://127.0.0.1:{port}/v1"]
        assert votes([str(examples), *options, "--out", str(tmp_path / "v.parquet")]) == 0
        assert pd.read_parquet(tmp_path / "v.parquet").iloc[0, -1] == 1
    finally:
        next(running, None)

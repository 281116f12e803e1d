"""Servers that nobody here wrote, driven end to end. Opt in with DEEP_PEERS=1; docs/ledger.md says what each lacks.

`transformers serve` needs ``pip install "transformers[serving]" accelerate``; it runs a tiny model with random
weights that the test makes. The litellm proxy is looked for at ``DEEP_LITELLM`` (the path of its command), since it
wants an environment of its own.
"""

import importlib.util
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pandas as pd
import pytest

from tests.deep_commands import votes as main
from tests.llm.calls import rows
from tests.llm.crash import write_examples

pytestmark = pytest.mark.skipif(not os.environ.get("DEEP_PEERS"), reason="set DEEP_PEERS=1 to drive real servers")

_TINY = """
import sys
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

torch.manual_seed(0)
vocab = {c: i for i, c in enumerate(["<s>", "</s>", *sorted(pre_tokenizers.ByteLevel.alphabet())])}
tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[]))
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="</s>")
wrapped.chat_template = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\\n{% endfor %}assistant: "
wrapped.save_pretrained(sys.argv[1])
size = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
config = LlamaConfig(vocab_size=len(vocab), num_key_value_heads=2, max_position_embeddings=8192, **size)
LlamaForCausalLM(config).save_pretrained(sys.argv[1])
"""

_MOCKS = {"yes": "VERDICT: YES", "limited": "litellm.RateLimitError", "broken": "litellm.InternalServerError"}


def _free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _serve(command, health, environment, log):
    """Start a server, wait until it is healthy, and end it afterwards."""
    with log.open("w") as output:
        process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=output, stderr=output)
    try:
        for _ in range(180):
            try:
                with urllib.request.urlopen(health, timeout=1):
                    break
            except OSError:
                if process.poll() is not None:
                    pytest.fail(f"the server did not start: {log.read_text()[-500:]}")
                time.sleep(0.5)
        yield
    finally:
        process.terminate()
        process.wait(20)


@pytest.fixture(scope="module")
def transformers_server(tmp_path_factory):
    """Serve a tiny model with random weights; give its URL and its name."""
    needed = [
        name for name in ("accelerate", "fastapi", "transformers", "uvicorn") if not importlib.util.find_spec(name)
    ]
    if needed:
        pytest.skip(f"not installed: {', '.join(needed)}")
    folder, port = tmp_path_factory.mktemp("peer"), _free_port()
    model = folder / "tiny"
    subprocess.run([sys.executable, "-c", _TINY, model], check=True, stderr=subprocess.DEVNULL)
    command = [Path(sys.executable).with_name("transformers"), "serve", model, "--device", "cpu", "--port", str(port)]
    serving = _serve(command, f"http://127.0.0.1:{port}/health", {"HF_HUB_OFFLINE": "1"}, folder / "log")
    next(serving)
    yield f"http://127.0.0.1:{port}/v1", str(model)
    next(serving, None)


def test_transformers_serve(transformers_server, tmp_path):
    """Every example gets a vote or a reason; log-probabilities and schemas are ignored, and that is noticed."""
    url, model = transformers_server
    examples = write_examples(tmp_path / "news.csv", 6)
    options = ["--prompt", "yes-no", "fect-3d-direct-json", "--llm", model, "--base-url", url, "--soft"]
    status = main(
        [str(examples), *options, "--max-tokens", "16", "--concurrency", "4", "--out", str(tmp_path / "v.parquet")]
    )
    assert status == 1
    votes, reasons = pd.read_parquet(tmp_path / "v.parquet"), pd.read_parquet(tmp_path / "v.reasons.parquet")
    assert votes.iloc[:, 4:].notna().sum().sum() + len(reasons) == 12
    assert rows(tmp_path / "v.ledger.sqlite", "SELECT count(*), min(outcome), max(outcome) FROM attempts") == [
        (12, "answered", "answered")
    ]
    result = rows(tmp_path / "v.ledger.sqlite", "SELECT parameter, action FROM quirks ORDER BY parameter")
    assert result == [("logprobs", "ignored"), ("response_format", "ignored")]
    assert rows(tmp_path / "v.ledger.sqlite", "SELECT min(output_tokens) > 0 FROM attempts") == [(1,)]


def test_transformers_serve_knows_its_model(transformers_server, tmp_path, capsys):
    """Another model's name is refused with HTTP 400, and the run stops at once."""
    examples = write_examples(tmp_path / "news.csv", 6)
    options = ["--prompt", "yes-no", "--llm", "org/nothing", "--base-url", transformers_server[0]]
    assert main([str(examples), *options, "--out", str(tmp_path / "v.parquet")]) == 2
    assert "The endpoint refuses every request" in capsys.readouterr().err


@pytest.fixture(scope="module")
def litellm_server(tmp_path_factory):
    """Serve litellm's mock answers; give the URL and the key."""
    command = os.environ.get("DEEP_LITELLM") or shutil.which("litellm")
    if command is None:
        pytest.skip("the litellm proxy is not installed; DEEP_LITELLM may name its command")
    folder, port, key = tmp_path_factory.mktemp("peer"), _free_port(), f"sk-{secrets.token_hex(24)}"
    models = [
        {"model_name": name, "litellm_params": {"model": f"openai/{name}", "api_key": "none", "mock_response": reply}}
        for name, reply in _MOCKS.items()
    ]
    (folder / "config.yaml").write_text(json.dumps({"model_list": models}))
    start = [command, "--config", str(folder / "config.yaml"), "--host", "127.0.0.1", "--port", str(port)]
    health = f"http://127.0.0.1:{port}/health/liveliness"
    serving = _serve(start, health, {"LITELLM_MASTER_KEY": key}, folder / "log")
    next(serving)
    yield f"http://127.0.0.1:{port}/v1", key
    next(serving, None)


@pytest.mark.parametrize(
    ("model", "status", "expected"),
    [("yes", 0, ("answered", 6)), ("limited", 1, ("rate_limited", 12)), ("broken", 1, ("server_error", 12))],
)
def test_litellm_proxy(litellm_server, tmp_path, monkeypatch, model, status, expected):
    """Its mock answers, 429 (without Retry-After) and 500 are what they seem; its key is written nowhere."""
    url, key = litellm_server
    monkeypatch.setenv("PROXY_KEY", key)
    examples = write_examples(tmp_path / "news.csv", 6)
    options = ["--prompt", "yes-no", "--llm", model, "--base-url", url, "--api-key-env", "PROXY_KEY"]
    options += ["--max-attempts", "2", "--backoff", "0.1", "--out", str(tmp_path / "v.parquet")]
    assert main([str(examples), *options]) == status
    assert rows(tmp_path / "v.ledger.sqlite", "SELECT outcome, count(*) FROM attempts GROUP BY outcome") == [expected]
    assert rows(tmp_path / "v.ledger.sqlite", "SELECT count(*) FROM attempts WHERE retry_after > 0") == [(0,)]
    assert all(key.encode() not in path.read_bytes() for path in tmp_path.iterdir())


def test_litellm_proxy_with_a_wrong_key(litellm_server, tmp_path, monkeypatch, capsys):
    """One request, and the run stops."""
    monkeypatch.setenv("PROXY_KEY", "sk-wrong-wrong-wrong")
    examples = write_examples(tmp_path / "news.csv", 6)
    options = ["--prompt", "yes-no", "--llm", "yes", "--base-url", litellm_server[0], "--api-key-env", "PROXY_KEY"]
    assert main([str(examples), *options, "--out", str(tmp_path / "v.parquet")]) == 2
    message = capsys.readouterr().err
    assert "The endpoint refuses every request" in message
    assert "sk-wrong-wrong-wrong" not in message

"""Ray Data asks: batch files out, its HTTP processor over them, results in; the ledger stays the only truth.

    pip install "ray[data]" aiohttp
    python examples/scale/ask_with_ray.py

The endpoint is a stand-in on this machine that refuses a twentieth of the requests. With ``OPENAI_BASE_URL`` set, it is
that one, with the key in ``OPENAI_API_KEY``.
"""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import ray
from ray.data.llm import HttpRequestProcessorConfig, build_processor

from deep.cli import main

ROOT = Path(__file__).resolve().parents[2]
out = Path(os.environ.get("OUT", "runs/example-scale"), "ask-ray")
out.mkdir(parents=True, exist_ok=True)
server = None
if "OPENAI_BASE_URL" not in os.environ:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "tests.fault_server", "--port", str(port), "--fault", "rate_limited=0.05"]
    server = subprocess.Popen(words, cwd=ROOT)
    os.environ |= {"OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1", "OPENAI_API_KEY": "unused"}

votes = [str(ROOT / "examples" / "claims.csv"), "--pool", "deep-3", "--llm", "stand-in"]
votes += ["--out", str(out / "votes.parquet")]
assert main([*votes, "--batch-out", str(out / "shards")], command="votes") == 0

ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=200_000_000)
ray.data.DataContext.get_current().enable_progress_bars = False
config = HttpRequestProcessorConfig(
    url=os.environ["OPENAI_BASE_URL"] + "/chat/completions",
    headers={"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"},
    max_retries=8,
    base_retry_wait_time_in_s=0.1,
    concurrency=1,
)


def asked(row: dict[str, str]) -> dict[str, object]:
    """Return the body of a request, and its id beside it."""
    request = json.loads(row["text"])
    return {"payload": request["body"], "custom_id": request["custom_id"]}


def answered(row: dict[str, object]) -> dict[str, str]:
    """Return an answer as the line of a batch's results."""
    response = {"status_code": 200, "body": row["http_response"]}
    line = {"id": row["custom_id"], "custom_id": row["custom_id"], "response": response, "error": None}
    return {"line": json.dumps(line)}


shards = [str(path) for path in sorted((out / "shards").glob("*.jsonl"))]
if shards:  # none where all is asked
    results = build_processor(config, preprocess=asked, postprocess=answered)(ray.data.read_text(shards))
    (out / "results").mkdir(exist_ok=True)
    lines = [row["line"] for row in results.take_all()]
    (out / "results" / "ray.jsonl").write_text("\n".join([*lines, ""]), encoding="utf-8")
    assert main([*votes, "--batch-in", str(out / "results")], command="votes") == 0
ray.shutdown()
if server is not None:
    server.terminate()
    server.wait()

"""A loopback server in OpenAI's format that answers with a model on disk: greedy, one reply at a time."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


@contextmanager
def serving(folder, name="tuned", *, context=None, log=None, **loading):
    """Serve the model of a folder under a name; yield the base URL.

    `context` is how many tokens question and answer may have together, `log` a list that takes each request with its
    reply, and `loading` what transformers needs to read the folder (`gguf_file`).
    """
    tokenizer = AutoTokenizer.from_pretrained(folder, **loading)
    model = AutoModelForCausalLM.from_pretrained(folder, **loading).eval()
    log = [] if log is None else log
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(tokenizer, model, name, context, log, threading.Lock()))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(tokenizer, model, name, context, log, lock):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                reply = answer(tokenizer, model, body["messages"], body.get("max_tokens", 32), context)
                log.append((body, reply))
            payload = json.dumps(
                {"id": "1", "object": "chat.completion", "created": 0, "model": name, **reply}
            ).encode()
            self.send_response(400 if "error" in reply else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        def log_message(self, *_):
            """Say nothing on standard error."""

    return Handler


def answer(tokenizer, model, messages, max_tokens, context=None):
    """Generate one reply, and say why it stopped and what it took; an error where the question fills the context."""
    asked = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    length = asked["input_ids"].shape[1]
    if context is not None and length >= context:
        # In the words of llama.cpp's server.
        message = f"request ({length} tokens) exceeds the available context size ({context} tokens), try increasing it"
        return {"error": {"code": 400, "type": "exceed_context_size_error", "message": message}}
    max_tokens = max_tokens if context is None else min(max_tokens, context - length)
    with torch.inference_mode():
        printed = model.generate(**asked, max_new_tokens=max_tokens, do_sample=False)[0, length:]
    ended = int(printed[-1]) == tokenizer.eos_token_id
    message = {"role": "assistant", "content": tokenizer.decode(printed, skip_special_tokens=True)}
    usage = {"prompt_tokens": length, "completion_tokens": len(printed), "total_tokens": length + len(printed)}
    choice = {"index": 0, "message": message, "finish_reason": "stop" if ended else "length"}
    return {"choices": [choice], "usage": usage}

"""A server on this machine that publishes a benchmark, for the tests of downloads."""

import hashlib
import http.server
import threading
from contextlib import contextmanager
from dataclasses import replace

from deep.datasets.benchmarks import BENCHMARKS, Benchmark, BenchmarkFile


@contextmanager
def server(files):
    """Serve paths from memory; a value that is a number is a status, a tuple promises more bytes than it sends."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            answer = files[self.path]
            body, length = answer if isinstance(answer, tuple) else (answer, None)
            if isinstance(body, int):
                self.send_error(body)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(length or len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    asked = []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.server_port}", asked
        finally:
            listening.shutdown()
            thread.join()


BODY = b"conversation,claim,claim_is_factual\nIt rained.,Wet.,TRUE\n"
SHA256 = hashlib.sha256(BODY).hexdigest()


def served(url, sha256=SHA256) -> Benchmark:
    """Return FECT as this machine publishes it."""
    file = BenchmarkFile(name="fect_benchmark.csv", url=f"{url}/fect.csv", sha256=sha256)
    return replace(BENCHMARKS["fect"], files=(file,))

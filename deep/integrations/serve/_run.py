"""A server from its options to its end: where it listens, what it prints, and how it stops."""

import argparse
import gc
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from deep import console, model
from deep._util.options import argument, topic_values
from deep.exceptions import ExitStatus, InputError, needs_extra
from deep.integrations import serve
from deep.integrations.serve._exchange import ASGIApp
from deep.integrations.serve._guard import Guard, ServerOptions, find_token, to_stderr

if TYPE_CHECKING:
    import uvicorn

# The signals that end a server: a lost terminal, Ctrl-C, and what containers and service managers send.
STOP_SIGNALS = ("SIGHUP", "SIGINT", "SIGTERM")
# Seconds that a connection may be quiet between two requests, as uvicorn has it by default: a longer wait spares
# clients new connections, and holds more of the few that may be open at once.
KEEP_ALIVE = 5

# Seconds that a server which is told to end still works on answers; containers are killed after ten.
GRACE_SECONDS = 8


def check_free(options: ServerOptions) -> None:
    """Raise where nothing could be served: for what has something to write before it listens.

    Raises
    ------
    InputError
        The address cannot be listened at.
    MissingDependencyError
        ``deep-judges[serve]`` is not installed.
    """
    with needs_extra("serve", what="A server"):
        import uvicorn  # noqa: F401
    with _bound_socket(options):
        pass


def run_server(
    app: ASGIApp, options: ServerOptions | None = None, *, say: Callable[[str], object] = to_stderr, path: str = "/"
) -> ExitStatus:
    """Serve an application behind its guard until Ctrl-C, SIGTERM or a lost terminal; what is in flight is finished.

    One line with the address goes to standard output. What takes more than `GRACE_SECONDS` is cut off, as by a second
    Ctrl-C at once.

    Parameters
    ----------
    app : ASGI application
        What is served, behind a :class:`Guard`.
    options : ServerOptions, optional
        Default: port 8000 of loopback, without a token.
    say : callable, default: a line on standard error
        Called with a line of text at the end, where a ticket was used, and where the application raised.
    path : str, default='/'
        The page whose address is printed.

    Returns
    -------
    ExitStatus
        ``INTERRUPTED``, for nothing else ends a server.

    Raises
    ------
    InputError
        The address cannot be listened at.
    DeepError
        The application cannot start.
    MissingDependencyError
        ``deep-judges[serve]`` is not installed.
    """
    with _listening_server(app, options or ServerOptions(), say) as (server, listener, guard):

        async def begin() -> None:
            sys.stdout.write(f"serving {guard.address(path)} (Ctrl-C ends it)\n")
            sys.stdout.flush()
            gc.freeze()  # libraries and the model stay to the end, and need not be gone through time and again

        server.config.callback_notify = begin
        with _stopped_by_signals(server):
            _run(server, listener, guard)
    n = guard.n_cut
    loss = f"{n} request{'s were' if n > 1 else ' was'} not answered in time; the ledger marks them as unknown"
    say(f"the server has stopped; {loss if n else 'requests in flight were answered'}")
    return ExitStatus.INTERRUPTED


@contextmanager
def serving(app: ASGIApp, options: ServerOptions | None = None) -> Iterator[str]:
    """Serve an application in a thread, for tests and notebooks; yields its address.

    Parameters
    ----------
    app : ASGI application
        What is served, behind a :class:`Guard`.
    options : ServerOptions, optional
        Default: loopback, at any port that is free.

    Examples
    --------
    >>> from urllib.request import urlopen
    >>> from deep.integrations.serve import serving
    >>> async def app(scope, receive, send):
    ...     await send({"type": "http.response.start", "status": 200, "headers": []})
    ...     await send({"type": "http.response.body", "body": b"hello"})
    >>> with serving(app) as address, urlopen(address) as answer:
    ...     answer.read()
    b'hello'
    """
    with _listening_server(app, options or ServerOptions(port=0), to_stderr) as (server, listener, guard):
        failures: list[BaseException] = []
        began = threading.Event()

        async def begin() -> None:
            began.set()

        def run() -> None:
            try:
                _run(server, listener, guard)
            except BaseException as error:
                failures.append(error)
            began.set()

        server.config.callback_notify = begin
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        began.wait()
        try:
            if failures:
                raise failures[0]
            yield guard.address()
        finally:
            server.should_exit = True
            thread.join()


def _run(server: "uvicorn.Server", listener: socket.socket, guard: Guard) -> None:
    """Run a server to its end, or raise the error for which its application could not start."""
    try:
        server.run([listener])
    except SystemExit:  # uvicorn's word for a failed start
        if guard.failure is None:
            raise
        raise guard.failure from None


@contextmanager
def _listening_server(
    app: ASGIApp, options: ServerOptions, say: Callable[[str], object]
) -> "Iterator[tuple[uvicorn.Server, socket.socket, Guard]]":
    """Yield a server that is ready to run, the socket that it listens at, and the guard, which knows the address."""
    with needs_extra("serve", what="A server"):
        import uvicorn

        from deep.integrations.serve._protocol import TimedProtocol
    with _bound_socket(options) as listener:
        guard = Guard(app, options, say, listener.getsockname()[1])
        config = uvicorn.Config(
            guard,
            http=partial(TimedProtocol, read_timeout=options.read_timeout, most=options.most_connections),  # type: ignore[arg-type]
            ws="none",
            log_config=None,
            log_level="critical",  # its lines may hold what clients sent
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE,
            timeout_graceful_shutdown=GRACE_SECONDS,
            # uvicorn calls back on its first tick, and then each time so many seconds have passed: two years, so once.
            timeout_notify=1 << 26,
        )
        server = uvicorn.Server(config)
        # uvicorn's own handlers would replace those of `_stopped_by_signals`, and raise each signal again at the end.
        server.capture_signals = nullcontext  # type: ignore[method-assign, assignment]
        yield server, listener, guard


@contextmanager
def _bound_socket(options: ServerOptions) -> Iterator[socket.socket]:
    """Yield a socket that listens at the address of the options.

    Raises
    ------
    InputError
        The address is not this machine's, or another program listens there.
    """
    try:
        result = socket.getaddrinfo(
            options.host or None, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, _, _, _, place = result[0]
        # Connections that may wait to be accepted: as many as where uvicorn opens the socket itself.
        listener = socket.create_server(place[:2], family=family, backlog=2048)
    # ValueError: a host that cannot be encoded as a name (IDNA), as one with an empty part between two dots.
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"`port` must be free at an address of this machine. Got {options.port} at {options.host!r}: {why}. "
            "Choose another, or 0 for any."
        ) from None
    with listener:
        yield listener


@contextmanager
def _stopped_by_signals(server: "uvicorn.Server") -> Iterator[None]:
    """Let the first signal end a server once it has answered, and the second one at once."""

    def stop(_: int, __: FrameType | None) -> None:
        server.force_exit = server.should_exit
        server.should_exit = True

    before = {}
    for number in (getattr(signal, name) for name in STOP_SIGNALS if hasattr(signal, name)):
        # A signal that is ignored stays so, as SIGHUP under nohup.
        if signal.getsignal(number) != signal.SIG_IGN:
            before[number] = signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


add_arguments = console.adder(
    argument("model_file", "MODEL.json", "a model file"),
    "prior",
    *(
        ServerOptions,
        serve.CheckOptions,
        console.OwnJudges,
        "decide",
        "share",
        "allow-mismatch",
        "otel",
        *console.PROMPT_TOPICS,
    ),
    argument(
        "token_file",
        "FILE",
        "file of the token that clients must send; default: DEEP_TOKEN, or a new token if others can reach the server",
        flags=["--token-file"],
        type=Path,
    ),
    prior={"help": "share of consistent texts; default: the training mean"},
)


def run(args: argparse.Namespace) -> int:
    """Serve until interrupted."""
    if len(args.llm) > 1:
        raise InputError(
            f"`llm` must name one LLM to ask in place of the fitted ones. Got {len(args.llm)}. Leave it out to ask the "
            "LLMs of the model."
        )
    console.check_one_share(args)
    fitted = console.load_model(args.model_file, args.decide, args.share)
    prior = None if args.prior is None else model.check_prior(args.prior)
    served = serve.CheckOptions(
        **topic_values(serve.CheckOptions, args),
        score=model.ScoreOptions(args.allow_mismatch, prior=prior),
        finder=console.finder_of(args),
        ask=console.ask_options(args, Path(args.model_file)),
        endpoint=console.endpoint_of(args),
        model_file=Path(args.model_file),
    )
    server = ServerOptions(**topic_values(ServerOptions, args), token=find_token(args.token_file, args.host))
    with console.evaluation_events(on=args.otel) as events:
        return run_server(serve.create_app(fitted, replace(served, on_scored=events)), server)

"""Downloads of benchmarks, from a server on this machine and never from the internet."""

import pytest

from deep.datasets import read_examples
from deep.datasets.benchmarks import BENCHMARKS, fetch_benchmark
from deep.exceptions import InputError
from tests.datasets.downloads import BODY, SHA256, served, server


def test_a_download_is_kept_and_not_repeated(home, monkeypatch):
    """The file goes to the first home; once it is there, nothing is asked."""
    with server({"/fect.csv": BODY}) as (url, asked):
        (path,) = fetch_benchmark(served(url))
        assert path == home / "fect/fect_benchmark.csv"
        assert path.read_bytes() == BODY
        assert fetch_benchmark(served(url)) == [path]
        assert asked == ["/fect.csv"]
        path.write_bytes(b"damaged")
        fetch_benchmark(served(url))
        assert path.read_bytes() == BODY
    assert read_examples("fect").check() == 1


@pytest.mark.parametrize(
    ("answer", "sha256", "complaint"),
    [
        (BODY + b"more", SHA256, "Got a file with another SHA-256 than the published one"),
        (404, SHA256, "Got status 404 from http"),
        (500, None, "Got status 500 from http"),
        ((BODY, 10_000), SHA256, "Got RemoteProtocolError from"),
        ((BODY, 10_000), None, "Got RemoteProtocolError from"),
    ],
)
def test_a_download_that_fails_leaves_nothing(home, answer, sha256, complaint):
    """One line that says what came and what to do."""
    with server({"/fect.csv": answer}) as (url, _), pytest.raises(InputError, match=complaint) as caught:
        fetch_benchmark(served(url, sha256), allow_unverified=True)
    assert "\n" not in str(caught.value)
    assert "nothing of it was kept" in str(caught.value)
    assert [path for path in home.rglob("*") if path.is_file()] == []


def test_a_server_that_is_not_there_is_one_clear_line(home):
    """No traceback of the library that downloads."""
    with server({}) as (url, _):
        pass
    with pytest.raises(InputError, match=r"Got ConnectError from http://127.0.0.1"):
        fetch_benchmark(served(url))


def test_a_file_without_a_checksum_needs_leave(home):
    """Nothing is asked before it is given; then the file is kept."""
    with server({"/fect.csv": BODY}) as (url, asked):
        with pytest.raises(InputError, match=r"'fect_benchmark.csv' has none. Add --allow-unverified"):
            fetch_benchmark(served(url, None))
        assert asked == []
        (path,) = fetch_benchmark(served(url, None), allow_unverified=True)
        assert path.read_bytes() == BODY
        assert fetch_benchmark(served(url, None), allow_unverified=True) == [path]
        assert asked == ["/fect.csv"]


def test_what_cannot_be_downloaded_says_how_to_get_it(home):
    """A gated benchmark has no address to ask."""
    with pytest.raises(InputError, match=r"can be downloaded. Got 'llm-aggrefact'. Sign in to Hugging Face"):
        fetch_benchmark(BENCHMARKS["llm-aggrefact"], allow_unverified=True)


def test_a_home_that_is_a_file_is_refused(home):
    """It is named, with what to set."""
    home.write_text("not a folder")
    with server({"/fect.csv": BODY}) as (url, _), pytest.raises(InputError, match=r"`DEEP_DATA_HOME` must be a folder"):
        fetch_benchmark(served(url))

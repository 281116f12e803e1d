"""Many calls to a paid endpoint: nothing lost, nothing bought twice, and the bill known.

A :class:`Runner` takes a lazy stream of :class:`Request` through a fixed pool of workers; a :class:`Ledger`
remembers what was asked, answered and paid, so that the same command again asks only what is missing.
"""

from deep.llm._batch import BatchRunner
from deep.llm._budget import Budget, output_limit, worst_case
from deep.llm._caller import Caller, Terms
from deep.llm._claims import Job
from deep.llm._client import Client
from deep.llm._database import describe_ledger
from deep.llm._errors import FAILURES, CallError, EndpointError, LedgerError
from deep.llm._history import Answer, History, ReportRow
from deep.llm._ledger import Ledger
from deep.llm._limits import ConcurrencyLimit, Throttle
from deep.llm._price import PriceBook
from deep.llm._quirks import Quirk, Quirks
from deep.llm._reply import Reply, read_reply
from deep.llm._request import Request, json_text
from deep.llm._retry import RetryPolicy
from deep.llm._runner import Runner
from deep.llm._secrets import Redactor, check_base_url
from deep.llm._tally import Tally

__all__ = [
    "FAILURES",
    "Answer",
    "BatchRunner",
    "Budget",
    "CallError",
    "Caller",
    "Client",
    "ConcurrencyLimit",
    "EndpointError",
    "History",
    "Job",
    "Ledger",
    "LedgerError",
    "PriceBook",
    "Quirk",
    "Quirks",
    "Redactor",
    "Reply",
    "ReportRow",
    "Request",
    "RetryPolicy",
    "Runner",
    "Tally",
    "Terms",
    "Throttle",
    "check_base_url",
    "describe_ledger",
    "json_text",
    "output_limit",
    "read_reply",
    "worst_case",
]

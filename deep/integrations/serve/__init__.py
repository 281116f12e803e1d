"""Serve a model over HTTP: POST a source and a claim to /v1/check, get P(consistent) and each judge's vote.

All of it needs ``pip install 'deep-judges[serve]'``.

For instance:

  deep serve model.json
      at http://127.0.0.1:8000, for programs of this machine alone
  curl localhost:8000/v1/check -H 'Content-Type: application/json' -d '{"source": "It rained.", "claim": "It was dry."}'
      one pair; a list of pairs gives a list of results
  deep serve model.json --budget 5 --ledger served.sqlite
      judges that ask LLMs: what was asked and paid is in the ledger, and is not asked again
  deep serve model.json --host 0.0.0.0 --token-file token.txt
      for other machines, which must send the token
  deep serve model.json --mcp
      for agents too: at http://127.0.0.1:8000/mcp three tools of the Model Context Protocol
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

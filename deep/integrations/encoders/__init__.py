"""Judges that need no LLM: natural language inference, factual-consistency and sentence-embedding models.

Any sequence-classification model of the Hugging Face hub, or one in a folder, becomes a labeling function; so does
a sentence-embedding model. Both need ``pip install 'deep-judges[encoders]'``. Scores that were computed elsewhere need
none of this: they enter as a table, see :func:`deep.datasets.read_scores`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

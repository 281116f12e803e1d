"""Judges that need no LLM: natural language inference, factual-consistency and sentence-embedding models.

Any sequence-classification model of the Hugging Face hub, or one in a folder, becomes a labeling function; so does
a sentence-embedding model. Both need ``pip install 'deep[encoders]'``. Scores that were computed elsewhere need none
of this: they enter as a table, see :func:`deep.datasets.read_scores`.
"""

from deep.features.encoders._embedding import EmbeddingLabelingFunction, load_embedding
from deep.features.encoders._encoder import EncoderLabelingFunction, load_encoder

__all__ = ["EmbeddingLabelingFunction", "EncoderLabelingFunction", "load_embedding", "load_encoder"]

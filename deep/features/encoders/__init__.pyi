from ._embedding import EmbeddingLabelingFunction as EmbeddingLabelingFunction
from ._embedding import load_embedding as load_embedding
from ._encoder import EncoderLabelingFunction as EncoderLabelingFunction
from ._encoder import load_encoder as load_encoder

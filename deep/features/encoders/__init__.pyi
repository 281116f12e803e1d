from ._embedding import EmbeddingJudge as EmbeddingJudge
from ._embedding import load_embedding as load_embedding
from ._encoder import EncoderJudge as EncoderJudge
from ._encoder import load_encoder as load_encoder

from ._pool import Pool as Pool
from ._pool import PoolScores as PoolScores

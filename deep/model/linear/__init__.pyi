from ._linear import Linear as Linear

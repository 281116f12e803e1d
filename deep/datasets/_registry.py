"""Names of datasets, as files spell them."""

from deep._dataset_names import canonical_name, family_of, resolve_dataset

__all__ = ["canonical_name", "family_of", "resolve_dataset"]

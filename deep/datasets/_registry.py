"""Names of datasets, as files spell them."""

from deep._util.names import canonical_name as canonical_name
from deep._util.names import family_of as family_of
from deep._util.names import resolve_dataset as resolve_dataset

"""Fixtures and hypothesis settings shared by the whole suite."""

import os
from pathlib import Path

import pytest

DATA_HOME = Path(os.environ.get("DEEP_DATA_HOME", Path(__file__).resolve().parents[2] / "shared" / "data"))


@pytest.fixture(scope="session")
def data_home() -> Path:
    """Return the folder of real data, or skip where it is absent."""
    if not DATA_HOME.is_dir():
        pytest.skip(f"real data not found in {DATA_HOME}; set DEEP_DATA_HOME")
    return DATA_HOME

"""Data to try the commands on."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np


@contextmanager
def demo_table() -> Iterator[Path]:
    """Give the digits of scikit-learn as a file, for as long as it is needed."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "digits.npz"
        np.savez(path, X=digits.data, y=digits.target, feature_names=digits.feature_names)
        yield path

"""How clusters compare with classes that are known from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def compare(classes: Sequence[str] | None, labels: np.ndarray) -> dict[str, float] | None:
    """Return scores against known classes, over the rows that have one; None without any."""
    known = np.array([bool(name) for name in classes or ()], dtype=bool)
    if not known.any():
        return None
    # Imported here: scikit-learn's metrics take longer to import than most of what is done with a table.
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    from smrmf.metrics import clustering_accuracy

    truth, found = np.asarray(classes, dtype=object)[known].astype(str), np.asarray(labels)[known]
    return {
        "accuracy": float(clustering_accuracy(truth, found)),
        "adjusted_rand_index": float(adjusted_rand_score(truth, found)),
        "normalized_mutual_information": float(normalized_mutual_info_score(truth, found)),
        "n_rows": int(known.sum()),
    }

"""The factors as the paper has them, from a fit that gives them in the units of users."""

import numpy as np


def paper_factors(model):
    """Return G, which is orthonormal, and F: columns and rows of a cluster of s points by sqrt(s)."""
    sizes = np.sqrt(np.maximum(np.bincount(model.labels_, minlength=len(model.components_)), 1))
    return model.embedding_ / sizes, model.components_ * sizes[:, None]

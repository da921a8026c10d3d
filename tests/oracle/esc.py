"""Exemplar-based subspace clustering, written down plainly: every point is solved anew in every round.

Slow and direct on purpose, with scikit-learn's Lasso. It shares no code with the library.
"""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import Lasso

# Costs this close, relatively, are ties and go to the first point.
TIE = 1e-6


def unit(X):
    """Scale rows to length one."""
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def coefficients(x, E, fidelity):
    """Solve ``min_c ||c||_1 + fidelity/2 ||x - c E||^2``."""
    # scikit-learn minimises alpha ||c||_1 + ||x - c E||^2 / (2 m).
    model = Lasso(alpha=1 / (fidelity * len(x)), fit_intercept=False, tol=1e-13, max_iter=10**6)
    return model.fit(E.T, x).coef_


def cost(x, E, c, fidelity):
    """Evaluate the cost of representing x by c."""
    return np.abs(c).sum() + fidelity / 2 * np.sum((x - c @ E) ** 2)


def farthest_first(X, first, count, fidelity):
    """Choose so many rows of X, each the worst represented by those before; return them and their costs."""
    X = unit(X)
    chosen, costs = [first], [fidelity / 2]
    while len(chosen) < count:
        E = X[chosen]
        now = np.array([cost(x, E, coefficients(x, E, fidelity), fidelity) for x in X])
        now[chosen] = -np.inf
        chosen.append(int(np.flatnonzero(now >= now.max() * (1 - TIE))[0]))
        costs.append(now[chosen[-1]])
    return np.array(chosen), np.array(costs)


def codes(X, chosen, fidelity):
    """Return the coefficients of all rows of X on the chosen ones, a multiple of itself for each of these."""
    X = unit(X)
    C = np.array([coefficients(x, X[chosen], fidelity) for x in X])
    C[chosen] = np.eye(len(chosen)) * (1 - 1 / fidelity)
    return C


def graph(X, C, n_neighbors):
    """Join every point to those with the nearest unit coefficients, and add the transpose.

    Coefficients at a right angle or more are not near: after all others these points come by cosine.
    """
    X, C = unit(X), unit(C)
    near = ((C[:, None, :] - C[None, :, :]) ** 2).sum(axis=2)
    far = ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2)
    distances = np.where(near < 2 - 1e-9, near, 2 + far)
    np.fill_diagonal(distances, np.inf)
    W = np.zeros(distances.shape)
    for row, nearest in zip(W, np.argsort(distances, axis=1, kind="stable"), strict=True):
        row[nearest[:n_neighbors]] = 1
    return W + W.T

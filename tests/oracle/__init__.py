"""Algorithm 1 transcribed in plain NumPy, in the paper's orientation: points are columns.

Slow and direct on purpose: dense Laplacians, sort-based projections, every variable by its printed
update (as corrected in paper notes 2, 3 and 26). It shares no code with the library.
"""

from __future__ import annotations

import numpy as np

# Entries closer than this are ties.
TIE = np.finfo(float).eps ** 0.6


def simplex_columns(V):
    """Project every column on the simplex, by sorting."""
    U = -np.sort(-V, axis=0)
    excess = np.cumsum(U, axis=0) - 1
    counts = np.arange(1, len(V) + 1)[:, None]
    r = (counts * U > excess).sum(axis=0)
    theta = excess[r - 1, np.arange(V.shape[1])] / r
    return np.maximum(V - theta, 0)


def l1inf_rows(Y, tau):
    """Project on ``sum_i max_j |y_ij| <= tau`` by bisection on theta, rows by exact sorting."""
    A = -np.sort(-np.abs(Y), axis=1)
    if A[:, 0].sum() <= tau:
        return Y.copy()
    sums, counts = np.cumsum(A, axis=1), np.arange(1, Y.shape[1] + 1)

    def levels(theta):
        candidates = (sums - theta) / counts
        return np.maximum(candidates.max(axis=1), 0) * (sums[:, -1] > theta)

    low, high = 0.0, sums[:, -1].max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if levels(middle).sum() > tau else (low, middle)
    level = levels((low + high) / 2)[:, None]
    return np.sign(Y) * np.minimum(np.abs(Y), level)


def squared(A, B):
    """Return squared distances between the columns of A and B."""
    return ((A[:, :, None] - B[:, None, :]) ** 2).sum(axis=0)


def kernel(d2, k, squared_bandwidth):
    """Evaluate (4.9): K_ij = exp(-d_ij / (2 s_i^2)), s_i from the k-th entry of row i, self excluded."""
    others = d2.copy()
    np.fill_diagonal(others, np.inf)
    kth = np.sort(others, axis=1)[:, k - 1]
    width = kth if squared_bandwidth else np.sqrt(kth)
    return np.exp(-d2 / (2 * width[:, None] ** 2)), width


def laplacian(Z, D, exemplars, k):
    """Build L of Z-hat, (3.6): the k largest entries of the rows with the largest norms.

    Among tied entries the smaller dissimilarity wins.
    """
    scores = np.linalg.norm(Z, axis=1)
    chosen = np.argsort(-np.rint(scores / scores.max() / TIE), kind="stable")[:exemplars]
    Zhat = np.zeros_like(Z)
    for i in chosen:
        row = Z[i].copy()
        row[i] = 0
        nearest = np.lexsort((D[i], -np.rint(row / TIE)))[:k]
        Zhat[i, nearest] = row[nearest]
    W = (Zhat + Zhat.T) / 2
    return np.diag(W.sum(axis=1)) - W


def a2dm2(D, tau, delta=0.01, mu=0.1, tol=1e-5, eta=0.999):
    """Run A2DM2 with restart, as paper notes 19 to 24 settle it."""
    n = len(D)
    C = np.zeros((n, n))
    C[np.argmin(D.sum(axis=1))] = 1
    Chat, Lhat, Z = C, np.zeros((n, n)), np.zeros((n, n))
    last_L, last_C = Lhat, C
    a, bound, last_gap = 1.0, np.inf, np.inf
    for _ in range(1000):
        old_Z = Z
        Z = simplex_columns((mu * Chat - Lhat - D) / (mu + delta))
        C = l1inf_rows((mu * Z + Lhat) / (mu + delta), tau)
        L = Lhat + mu * (Z - C)
        r = ((L - Lhat) ** 2).sum() / mu + mu * ((C - Chat) ** 2).sum()
        gap = np.abs(Z - C).max()
        done = max(gap, last_gap, np.abs(Z - old_Z).max()) <= tol
        if r < eta * bound:
            following = (1 + np.sqrt(1 + 4 * a**2)) / 2
            Lhat = L + (a - 1) / following * (L - last_L)
            Chat = l1inf_rows(Lhat / delta, tau)
            a, bound, last_L, last_C, last_gap = following, r, L, C, gap
        else:
            a, bound, Lhat, Chat = 1.0, bound / eta, last_L, last_C
        if done:
            break
    return Z, last_C


class RowSparse:
    """Z and C of SMRMF, (4.12) and (4.13), kernel dissimilarities; C may start with one exemplar."""

    def __init__(self, X, tau, k, beta, squared_bandwidth, single=False):
        self.tau, self.k, self.beta, self.wide = tau, k, beta, squared_bandwidth
        K, _ = kernel(squared(X, X), k, squared_bandwidth)
        self.D = -(K + K.T) / 2
        self.Z, self.C = a2dm2(self.D, tau)
        if single:
            best = self.D.sum(axis=1).argmin()
            self.C = np.outer(np.arange(len(self.D)) == best, np.ones(len(self.D)))
        self.L3 = np.zeros_like(self.Z)

    def update(self, G, H, lam, mu):
        K, _ = kernel(squared(G.T, H.T), self.k, self.wide)
        Dhat = self.D - lam / self.beta * (K + K.T) / 2
        self.Z = simplex_columns(self.C - self.L3 / mu - self.beta / mu * Dhat)
        self.C = l1inf_rows(self.Z + self.L3 / mu, self.tau)
        self.L3 = self.L3 + mu * (self.Z - self.C)

    def value(self):
        return self.beta * (self.D * self.Z).sum()


class ClosedForm:
    """Z of f-SMRMF, (5.18) on whole columns, kernel dissimilarities, one latent bandwidth."""

    def __init__(self, X, k, beta, delta, squared_bandwidth):
        self.k, self.beta, self.delta, self.wide = k, beta, delta, squared_bandwidth
        K, _ = kernel(squared(X, X), k, squared_bandwidth)
        self.D = -(K + K.T) / 2
        self.Z = simplex_columns(-self.D / delta)

    def update(self, G, H, lam, mu):
        d2 = squared(G.T, H.T)
        _, widths = kernel(d2, self.k, self.wide)
        K = np.exp(-d2 / (2 * widths.mean() ** 2))
        self.Z = simplex_columns(-(self.D - lam / self.beta * (K + K.T) / 2) / self.delta)

    def value(self):
        return self.beta * ((self.D * self.Z).sum() + self.delta / 2 * (self.Z**2).sum())


def algorithm_1(X, G, learner, exemplars, k, lam, mu, rho, iterations):
    """Run Algorithm 1 for some iterations; return the objective after each, and F, G, H."""
    F = X @ np.linalg.pinv(G.T)
    L1, L2 = np.zeros_like(X), np.zeros_like(G)
    history = []
    for _ in range(iterations):
        L = laplacian(learner.Z, learner.D, exemplars, k)
        B = X - F @ G.T + L1 / mu
        norms = np.linalg.norm(B, axis=0)
        E = B * np.where(norms >= 1 / mu, 1 - 1 / (mu * np.maximum(norms, 1e-300)), 0)
        F = (X - E + L1 / mu) @ G @ np.linalg.inv(G.T @ G)
        H = np.maximum(G + L2 / mu - lam / mu * L @ G, 0)
        U, _, Vt = np.linalg.svd(
            H - L2 / mu - lam / mu * L @ H + (X - E + L1 / mu).T @ F, full_matrices=False
        )
        G = U @ Vt
        learner.update(G, H, lam, mu)
        L1 = L1 + mu * (X - F @ G.T - E)
        L2 = L2 + mu * (G - H)
        mu = rho * mu
        loss = np.linalg.norm(X - F @ G.T, axis=0).sum()
        smooth = np.trace(G.T @ laplacian(learner.Z, learner.D, exemplars, k) @ G)
        history.append(loss + lam * smooth + learner.value())
    return np.array(history), F, G, H

"""What did the graph do? Which neighbourhoods it listened to, which not, and why."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from smrmf.graph.exemplars import cluster_scores, exemplar_scores, transposed
from smrmf.inspection._table import PlainTable, last_step


def neighborhoods(model: Any) -> PlainTable:
    """Say for every point whether the graph kept its neighbourhood, how much it represents, and of whom.

    The graph of f-SMRMF and SMRMF is made of the neighbourhoods of few points, those that represent
    the most:
    a neighbourhood is dropped because its point stands for too little, not because it is mixed. How
    much of
    what it stands for lies in its own cluster, ``agreement``, tells whether it was worth listening to.

    Parameters
    ----------
    model : fitted FastSMRMF, SMRMF, AMRMF, APMF, RMNMF or SelectiveRMNMF
        A model with a representation.

    Returns
    -------
    PlainTable
        A row for every point: ``cluster``; ``kept``, whether the graph has its neighbourhood; ``mass``, how
        much of other points it represents (by the model's ``exemplar_rule``); ``agreement``, the share of
        that inside its own cluster (0 where there is none); ``edges``, how many it has in the graph, and
        ``across``, the share of their weight that leads to other clusters.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from smrmf import FastSMRMF
    >>> from smrmf.inspection import neighborhoods
    >>> model = FastSMRMF(n_clusters=3, random_state=0).fit(load_iris().data)
    >>> table = neighborhoods(model)
    >>> int(table["kept"].sum())
    15
    >>> bool(table["mass"][table["kept"]].min() >= table["mass"][~table["kept"]].max())
    True
    """
    model = last_step(model)
    check_is_fitted(model)
    if not hasattr(model, "kept_indices_"):
        raise ValueError(
            f"{type(model).__name__} learns no neighbourhoods: use FastSMRMF or another method of the loop."
        )
    labels, Zt = model.labels_, transposed(model.representation_)
    kept = np.zeros(len(labels), dtype=bool)
    kept[model.kept_indices_] = True
    mass = exemplar_scores(Zt, "mass")
    inside = cluster_scores(Zt, labels, "mass")
    edges = sp.coo_array(model.affinity_)
    (rows, columns), weights = edges.coords, edges.data
    n = len(labels)
    total = np.bincount(rows, weights, n)
    leaving = np.bincount(rows, weights * (labels[rows] != labels[columns]), n)
    return PlainTable(
        {
            "cluster": labels,
            "kept": kept,
            "mass": exemplar_scores(Zt, getattr(model, "exemplar_rule", "mass")),
            "agreement": np.divide(inside, mass, out=np.zeros_like(mass), where=mass > 0).clip(0, 1),
            "edges": np.bincount(rows[weights > 0], minlength=n),
            "across": np.divide(leaving, total, out=np.zeros(n), where=total > 0),
        }
    )

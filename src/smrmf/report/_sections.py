"""What the template is given: the parts of the page, each from its own module, in the words it needs."""

from __future__ import annotations

from typing import Any

import numpy as np

import smrmf
from smrmf.report._certainty import certainty_of
from smrmf.report._code import code_of, written_parameters
from smrmf.report._compared import compared_of
from smrmf.report._evidence import evidence_of
from smrmf.report._exemplars import ShownExemplar, has_exemplars
from smrmf.report._findings import BOUNDARY, SURE, findings
from smrmf.report._images import PIXEL, Images
from smrmf.report._kept import kept_of
from smrmf.report._map import short
from smrmf.report._profiles import Profiles
from smrmf.report._rows import MOST_FEATURES, row_data
from smrmf.report._subject import Subject
from smrmf.report._words import count, percent

# Of many clusters the first ones stand on the page, and the others behind a click.
MOST_SIZES = 16
# Columns of the table of exemplars.
MOST_NUMBERS, MOST_TEXTS = 8, 4
# A card shows so many exemplars.
MOST_ON_CARD = 5


def sections(
    subject: Subject, exemplars: list[ShownExemplar], suggestion: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what stands on the page, and what the panel of an exemplar is made of."""
    images = Images(subject.table, subject.image_shape) if subject.image_shape else None
    profiles = None if images is not None else Profiles(subject)
    shown = [_shown(subject, found, number, images) for number, found in enumerate(exemplars)]
    sizes = _sizes(subject)
    context = {
        "n": subject.n_samples,
        "findings": findings(subject, profiles, suggestion),
        "sizes": sizes,
        "size_parts": [part for part in (sizes[:MOST_SIZES], sizes[MOST_SIZES:]) if part],
        "suggestion": evidence_of(subject, suggestion),
        "exemplars": shown,
        "words": _words(subject, images is not None),
        "cards": _cards(subject, profiles, images, shown),
        "values": _values(subject, profiles, exemplars),
        "certainty": certainty_of(subject),
        "sure": SURE,
        "boundary": BOUNDARY,
        "compared": compared_of(subject),
        "kept": kept_of(subject),
        "facts": _facts(subject),
        "code": code_of(subject, _n_columns(subject)),
        "version": smrmf.__version__,
        "has_images": images is not None,
        "image_of": lambda row: images.uri(subject.table.values[[row]]) if images else "",
        "called": lambda row: short(subject.name(row)),
    }
    return context, {} if profiles is None else row_data(subject, profiles, exemplars)


def _shown(subject: Subject, found: ShownExemplar, number: int, images: Images | None) -> dict[str, Any]:
    image = images.uri(subject.table.values[[found.row]]) if images else ""
    name = short(subject.name(found.row), 40)
    return {"number": number, "cluster": found.cluster, "name": name, "image": image}


def _sizes(subject: Subject) -> list[dict[str, Any]]:
    largest = int(subject.sizes.max())
    return [
        {
            "cluster": k,
            "size": f"{subject.sizes[k]:,}",
            "share": percent(subject.sizes[k] / subject.n_samples),
            "part": round(100 * subject.sizes[k] / largest, 2),
        }
        for k in subject.clusters
    ]


def _words(subject: Subject, has_images: bool) -> dict[str, str]:
    """Return the words that depend on what the model has and what the rows are."""
    if has_exemplars(subject):
        found = {
            "rings": "exemplars, rows that stand for those around them",
            "click": "click on one to see which",
            "title": "Exemplars",
            "many": "exemplars",
            "one": "Exemplar",
            "one_a": "an exemplar",
            "verb": "stands for",
        }
    else:
        found = {
            "rings": "typical rows, nearest to the mean of their cluster",
            "click": "click on one to see its neighbours",
            "title": "Typical rows",
            "many": "typical rows",
            "one": "Typical row",
            "one_a": "a typical row",
            "verb": "is nearest to",
        }
    # Columns of sparse tables that have names of their own are most often words.
    is_text = subject.table.is_sparse and not all(map(PIXEL.fullmatch, subject.table.names))
    if has_images:
        own = subject.in_unit_of_fit and _has_components(subject)
        what = "What the rows of a cluster have in common" if own else "The mean of the rows of a cluster"
        apart = f"{what}, as an image, and beside it {found['many']}."
    elif subject.table.is_sparse:
        named = "words" if is_text else "columns"
        apart = (
            f"The {named} that rows of a cluster have more often than others, with the share of rows "
            "that have them."
        )
    else:
        apart = (
            "The columns in which a cluster differs most: the typical value here with the range of the "
            "middle half of its rows, and the typical value elsewhere."
        )
    return found | {
        "apart": apart,
        "component": "Component",
        "feature": "Word" if is_text else "Column",
        "here": "rows here" if subject.table.is_sparse else "typical here",
    }


def _has_components(subject: Subject) -> bool:
    shape = getattr(subject.model, "components_", np.empty((0, 0))).shape
    return bool(shape == (len(subject.sizes), subject.table.values.shape[1]))


def _cards(
    subject: Subject, profiles: Profiles | None, images: Images | None, shown: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    if len(subject.clusters) < 2:
        return []
    cards = []
    for size in _sizes(subject):
        cluster = size["cluster"]
        mine = [exemplar for exemplar in shown if exemplar["cluster"] == cluster][:MOST_ON_CARD]
        card = {
            "cluster": cluster,
            "size": count(int(subject.sizes[cluster])),
            "share": size["share"],
            "image": "" if images is None else images.uri(_component(subject, cluster)),
            "contrasts": [] if profiles is None else profiles.contrasts(cluster),
            "kinds": [] if profiles is None else profiles.kinds(cluster),
            "exemplars": mine,
        }
        cards.append(card)
    return cards


def _component(subject: Subject, cluster: int) -> np.ndarray:
    """Return the row of components of a cluster if it is in the unit of the table, else the mean row."""
    if subject.in_unit_of_fit and _has_components(subject):
        return np.asarray(subject.model.components_[cluster])
    return np.asarray(subject.table.values[subject.labels == cluster].mean(axis=0)).ravel()


def _values(
    subject: Subject, profiles: Profiles | None, exemplars: list[ShownExemplar]
) -> dict[str, Any] | None:
    """Return the table of exemplars, in the columns that tell most, for print and without scripts."""
    table = subject.table
    if profiles is None or not exemplars or table.is_sparse or len(subject.clusters) < 2:
        return None
    ranked = list(dict.fromkeys(profiles.order.T.ravel().tolist()))
    chosen, texts = sorted(ranked[:MOST_NUMBERS]), list(table.words)[:MOST_TEXTS]
    if not chosen and not texts:
        return None
    rows = []
    for found in exemplars:
        cells = [table.written(table.values[found.row, j], j) for j in chosen]
        cells += [short(str(table.words[name][found.row]), 40) for name in texts]
        rows.append({"name": short(subject.name(found.row), 40), "cluster": found.cluster, "cells": cells})
    columns = [(str(table.names[j]), True) for j in chosen] + [(name, False) for name in texts]
    return {"columns": columns, "rows": rows, "cut": len(chosen) < len(ranked)}


def _n_columns(subject: Subject) -> int:
    step = subject.model if subject.pipeline is None else subject.pipeline[0]
    return int(getattr(step, "n_features_in_", subject.model.n_features_in_))


def _facts(subject: Subject) -> list[tuple[str, str]]:
    """Return what there is to know of the fit, by name."""
    model = subject.model
    changed = ", ".join(f"{name}={value}" for name, value in written_parameters(model))
    found = [("Model", type(model).__name__), ("Parameters that are not the usual ones", changed or "none")]
    if subject.pipeline is not None and len(subject.pipeline) > 1:
        steps = [type(step).__name__ for _, step in subject.pipeline.steps[:-1]]
        found.append(("Prepared by", ", ".join(steps)))
    columns = f"{count(subject.n_samples)} and {count(_n_columns(subject), 'column')}"
    if model.n_features_in_ != _n_columns(subject):
        columns += f", made into {count(model.n_features_in_, 'number')} per row"
    found.append(("Data", columns))
    if (n_iter := getattr(model, "n_iter_", None)) is not None:
        ended: dict[Any, str] = {True: ", until it settled", False: ", then stopped before it had settled"}
        found.append(("Iterations", f"{int(n_iter):,}" + ended.get(getattr(model, "converged_", None), "")))
    if (
        len(subject.table.names) > MOST_FEATURES
        and subject.image_shape is None
        and not subject.table.is_sparse
    ):
        found.append(
            ("On this page", f"the {MOST_FEATURES} most telling columns of {len(subject.table.names):,}")
        )
    return [*found, ("Version of smrmf", smrmf.__version__)]

"""The slots as an extender meets them: a variant in twenty lines, clear mistakes, and a loop that goes on."""

from __future__ import annotations

import ast
import copy
import pickle
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from add_a_variant import AgreeingAffinity, AgreeingRMNMF
from sklearn.datasets import load_iris

from smrmf import AMRMF, APMF, RMNMF, SMRMF, FastSMRMF
from smrmf._parallel import SERIAL
from smrmf.factorization._loop import Status, factorize
from smrmf.factorization._manifold import ManifoldFactorization
from smrmf.factorization._slots import (
    AbstractAffinity,
    AbstractExemplars,
    AbstractPoints,
    FixedAffinity,
    FixedPoints,
    GivenExemplars,
    GraphTerm,
    PointsTerm,
    RankedExemplars,
    Slots,
)
from smrmf.factorization._start import FirstIndicator, FirstPoints, weigh
from smrmf.graph.graphs import neighbor_graph, symmetrize
from smrmf.graph.neighbors import find_neighbors

X = load_iris().data
LIMITS = {"rho": 1.05, "max_iter": 60, "tol": 0.0}


def graph(k=5):
    near = find_neighbors(X, k)
    return symmetrize(neighbor_graph(near.indices, np.ones_like(near.squared)))


def slots(affinity=None, points=None):
    """Fill the slots; by default with a plain graph and the points as they are."""
    return Slots(
        affinity or FixedAffinity(graph(), graph()), points or FixedPoints(), RankedExemplars("mass", 3)
    )


def run(filled, limits=LIMITS, **options):
    """Run the loop from a start that is far off."""
    G = np.random.default_rng(0).uniform(0.1, 1, (len(X), 3))
    start = weigh(FirstPoints(X), FirstIndicator(G), "auto", "auto", 1.0, SERIAL)
    return factorize(filled, start, **limits | options)


@dataclass(frozen=True)
class Fading(AbstractAffinity):
    """Weights that fade with every update: in place or in a new array, and said or kept silent."""

    in_place: bool
    silent: bool = False

    def init(self, X):
        state = [graph()]
        return state, GraphTerm(state[0].copy(), 0.0)

    def update(self, state, X, G, H, lam, mu):
        state = state if self.in_place else [state[0].copy()]
        state[0].data *= 0.9
        return state, None if self.silent else GraphTerm(state[0].copy(), 0.0)

    def representation(self, state):
        return state[0]


# A variant


def test_a_variant_takes_twenty_lines():
    source = Path(__file__).parent.parent / "docs" / "add_a_variant.py"
    tree = ast.parse(source.read_text(encoding="utf8"))
    lines = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt)
        and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for line in ({node.lineno} if hasattr(node, "body") else range(node.lineno, node.end_lineno + 1))
    }
    assert 10 < len(lines) <= 20


def test_the_variant_learns_its_graph():
    model = AgreeingRMNMF(3, random_state=0).fit(X)
    halved = AgreeingAffinity(graph()).update(None, X, np.eye(3)[np.arange(len(X)) % 3], None, 1.0, 1.0)[0]
    assert 0 < (halved.data == 0.5 * graph().data).sum() < halved.nnz
    edges = model.affinity_.tocoo()
    inside = model.labels_[edges.row] == model.labels_[edges.col]
    fixed = RMNMF(3, random_state=0).fit(X).affinity_[edges.row, edges.col]
    assert (~inside).sum() > 0
    np.testing.assert_allclose(edges.data, np.where(inside, 1.0, 0.5) * fixed)


def test_a_variant_takes_its_parameters_as_they_are():
    assert set(AgreeingRMNMF().get_params()) == set(ManifoldFactorization.__init__.__kwdefaults__) | {
        "n_clusters"
    }
    with pytest.raises(ValueError, match=r"penalty_growth=0.5 is not valid for AgreeingRMNMF"):
        AgreeingRMNMF(3, penalty_growth=0.5).fit(X)


def test_a_parameter_without_a_constraint_is_found():
    class Forgetful(AgreeingRMNMF):
        def __init__(self, n_clusters=3, *, mood="good", n_jobs=1):
            self.n_clusters, self.mood, self.n_jobs = n_clusters, mood, n_jobs

    with pytest.raises(TypeError, match=r"Forgetful has a parameter 'mood'.*add it to _constraints"):
        Forgetful().fit(X)


# Changed and unchanged graphs


def test_states_in_place_and_new_ones_give_the_same_run():
    runs = [run(slots(Fading(in_place))).state for in_place in (True, False)]
    np.testing.assert_array_equal(runs[0].history, runs[1].history)
    np.testing.assert_array_equal(runs[0].G, runs[1].G)
    np.testing.assert_allclose(runs[0].graph.weights.data, 0.9**60 * graph().data)


def test_none_keeps_the_last_graph():
    silent, fixed = (run(slots(affinity)).state for affinity in (Fading(True, silent=True), None))
    np.testing.assert_array_equal(silent.history, fixed.history)


# Mistakes


@dataclass(frozen=True)
class Returning(AbstractAffinity):
    """Return any graph at first, and another after so many updates that change nothing."""

    first: object
    later: object
    unchanged: int = 0

    def init(self, X):
        return 0, GraphTerm(self.first, 0.0)

    def update(self, state, X, G, H, lam, mu):
        return state + 1, GraphTerm(self.later, 0.0) if state >= self.unchanged else None

    def representation(self, state):
        return self.first


def lopsided(W):
    W = W.tolil()
    W[3, 4] += 0.01
    return W.tocsr()


@pytest.mark.parametrize("form", [sp.csr_array.toarray, lambda W: W], ids=["dense", "sparse"])
@pytest.mark.parametrize("place", ["first", "later"])
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda W: W[:10], r"Returning returned a graph of shape \(10, 150\) for 150 points"),
        (lopsided, r"Returning returned a graph that is not symmetric: return \(W \+ W.T\) / 2"),
        (lambda W: sp.eye_array(150, k=1, format="csr"), "not symmetric"),
    ],
)
def test_a_graph_without_a_laplacian_is_refused(form, place, wrong, words):
    graphs = {"first": graph(), "later": graph()}
    graphs[place] = wrong(graphs[place])
    affinity = Returning(**{name: form(W) for name, W in graphs.items()})
    with pytest.raises(ValueError, match=words) as refused:
        run(slots(affinity))
    assert "\n" not in str(refused.value)


def test_a_graph_that_changes_late_is_checked_too():
    with pytest.raises(ValueError, match="Returning returned a graph that is not symmetric"):
        run(slots(Returning(graph(), lopsided(graph()), unchanged=2)))


@pytest.mark.parametrize("place", ["first", "later"])
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (graph().tocoo(), "as coo_array of float64: it must be an array or a CSR matrix"),
        (graph().astype(int), "as csr_array of int64: it must be .* of floating-point numbers"),
        (graph() * -1.0, "weights that are negative or not finite"),
        (graph() * np.nan, "weights that are negative or not finite"),
    ],
    ids=["COO", "integers", "negative", "NaN"],
)
def test_a_graph_of_another_form_is_refused(place, wrong, words):
    affinity = Returning(**{"first": graph(), "later": graph()} | {place: wrong})
    with pytest.raises(ValueError, match=f"Returning returned a graph .*{words}"):
        run(slots(affinity))


@dataclass(frozen=True)
class Answering(AbstractAffinity):
    """Answer anything."""

    first: object = (None, GraphTerm(graph(), 0.0))
    later: object = (None, None)
    Zt: object = field(default_factory=graph)

    def init(self, X):
        return self.first

    def update(self, state, X, G, H, lam, mu):
        return self.later

    def representation(self, state):
        return self.Zt


@dataclass(frozen=True)
class Moving(AbstractPoints):
    """Answer any points and any components."""

    later: object = (None, None)
    restored: object = None

    def update(self, state, Zt, target, mu):
        return self.later

    def restore(self, state, F):
        return (F, {}) if self.restored is None else self.restored


@dataclass(frozen=True)
class Naming(AbstractExemplars):
    """Name anything."""

    found: dict

    def attributes(self, Zt, labels):
        return self.found


TERM = GraphTerm(graph(), 0.0)


@pytest.mark.parametrize(
    ("filling", "words"),
    [
        (Answering(first=TERM), "Answering.init returned GraphTerm, but .* second part is GraphTerm"),
        (Answering(first=(None, graph())), "Answering.init returned NoneType, csr_array, but"),
        (Answering(later=TERM), "Answering.update returned GraphTerm, but .* is GraphTerm or NoneType"),
        (Answering(later=None), "Answering.update returned NoneType, but"),
        (Answering(later=(None, TERM, 1)), "Answering.update returned NoneType, GraphTerm, int, but"),
        (Moving(later=PointsTerm(X, 0.0)), "Moving.update returned PointsTerm, but .* PointsTerm or"),
        (Moving(later=(None, X)), "Moving.update returned NoneType, ndarray, but"),
    ],
    ids=["init term", "init graph", "term", "None", "three", "points term", "points"],
)
def test_an_answer_that_is_no_state_with_a_term_is_refused(filling, words):
    slot = "affinity" if isinstance(filling, AbstractAffinity) else "points"
    with pytest.raises(TypeError, match=words) as refused:
        run(replace(slots(), **{slot: filling}))
    assert "\n" not in str(refused.value)


class Extended(ManifoldFactorization):
    """A method with any filling of one slot."""

    filling = None

    def _slots(self, problem, start):
        kinds = {AbstractAffinity: "affinity", AbstractPoints: "points", AbstractExemplars: "exemplars"}
        for kind, slot in kinds.items():
            if isinstance(self.filling, kind):
                return replace(slots(), **{slot: self.filling})
        return self.filling


SCORED = {"exemplar_indices_": [3, 1], "exemplar_scores_": [2.0, 1.0]}


@pytest.mark.parametrize(
    ("filling", "words"),
    [
        (Answering(Zt=graph()[:9]), r"Answering.representation has the shape \(9, 150\), but the graph has"),
        (Moving(restored=np.ones((3, 4))), "Moving.restore returned ndarray, but .* second part is dict"),
        (Moving(restored=(np.ones((3, 2)), {})), r"Moving.restore returned an F of shape \(3, 2\).*\(3, 4\)"),
        (Naming({}), "Naming.attributes must have exemplar_indices_, some of the rows 0 to 149"),
        (Naming(SCORED | {"exemplar_indices_": [3, 150]}), "Naming.attributes must have exemplar_indices_"),
        (Naming(SCORED | {"exemplar_scores_": [1.0]}), "and exemplar_scores_, as many numbers"),
        (Answering, "_slots returned ABCMeta, but must return Slots"),
    ],
    ids=["representation", "restore", "components", "nothing", "no row", "few scores", "no slots"],
)
def test_results_that_do_not_fit_are_refused(monkeypatch, filling, words):
    monkeypatch.setattr(Extended, "filling", filling)
    model = Extended(3, random_state=0)
    before = dict(vars(model))
    with pytest.raises((TypeError, ValueError), match=words) as refused:
        model.fit(X)
    assert "\n" not in str(refused.value)
    assert vars(model) == before


def test_a_slot_cannot_change_what_the_fit_sets(monkeypatch):
    monkeypatch.setattr(Extended, "filling", Naming(SCORED | {"labels_": None, "mood_": "good"}))
    model = Extended(3, random_state=0).fit(X)
    assert model.mood_ == "good"
    assert model.labels_.shape == (150,)


@pytest.mark.parametrize("wrong", [X[:, :2], X[:9], X[0]], ids=["columns", "rows", "vector"])
def test_points_of_another_shape_are_refused(wrong):
    words = rf"Moving returned points of shape \({wrong.shape[0]}.*began with points of shape \(150, 4\)"
    with pytest.raises(ValueError, match=words):
        run(slots(points=Moving(later=(None, PointsTerm(wrong, 0.0)))))


@pytest.mark.parametrize("name", ["affinity", "points", "exemplars"])
def test_a_slot_filled_with_something_else_is_refused(name):
    with pytest.raises(TypeError, match=rf"The slot '{name}' holds 'nothing'.*Abstract{name.title()}"):
        run(replace(slots(), **{name: "nothing"}))


def test_a_missing_method_is_named():
    class Half(AbstractAffinity):
        def init(self, X):
            return None, GraphTerm(graph(), 0.0)

    with pytest.raises(TypeError, match="update"):
        Half()


# Going on from a saved state


class Saver:
    """Keep a copy of the state after some iterations."""

    def __init__(self, after):
        self.after, self.saved = after, None

    def __call__(self, state):
        if state.n_iter == self.after:
            self.saved = pickle.loads(pickle.dumps(state))
        return False


ESTIMATORS = [
    RMNMF(3, init="kmeans"),
    FastSMRMF(3),
    FastSMRMF(3, dissimilarity="kernel", smoothness=0.5, freeze_tol=1e-3),
    SMRMF(3),
    AMRMF(3),
    APMF(3, max_iter=25),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
@pytest.mark.parametrize("after", [1, 7])
def test_going_on_from_a_saved_state_gives_the_same_run(monkeypatch, estimator, after):
    asked, starts = [], []
    made = type(estimator)._slots

    def record_slots(model, problem, start):
        asked.append(made(model, problem, start))
        starts.append(start)
        return copy.deepcopy(asked[-1])

    monkeypatch.setattr(type(estimator), "_slots", record_slots)
    estimator.set_params(random_state=0, n_jobs=1, tol=1e-9, max_iter=25)
    with pytest.warns() as _:
        estimator.fit(X)
    limits = {"rho": estimator.penalty_growth, "max_iter": 25, "tol": 1e-9}
    saver = Saver(after)
    whole = factorize(copy.deepcopy(asked[0]), starts[0], **limits, on_iteration=saver)
    assert saver.saved.n_iter == after
    rest = factorize(asked[0], starts[0], **limits, state=saver.saved)
    assert rest.status is whole.status
    assert rest.state.n_iter == whole.state.n_iter == len(whole.state.history)
    np.testing.assert_array_equal(rest.state.history, whole.state.history)
    np.testing.assert_array_equal(rest.state.G, whole.state.G)
    np.testing.assert_array_equal(rest.state.F, whole.state.F)


@pytest.mark.parametrize(
    "limits", [LIMITS, LIMITS | {"max_iter": 900, "tol": 1e-4}], ids=["short", "converged"]
)
def test_a_run_that_has_ended_does_no_more(limits):
    done = run(slots(), limits)
    again = run(slots(), limits, max_iter=done.state.n_iter, state=done.state)
    assert again.state is done.state
    assert again.status is done.status
    if done.status is Status.CONVERGED:
        assert run(slots(), limits, state=done.state).state is done.state
    assert (done.status is Status.CONVERGED) == (limits is not LIMITS)


def test_exemplars_of_a_selector_are_as_it_gave_them():
    class Selector:
        exemplar_indices_ = (4, 2)

    found = GivenExemplars(Selector()).attributes(None, None)
    assert found["exemplar_indices_"].tolist() == [4, 2]
    assert found["exemplar_scores_"].tolist() == [1, 1]

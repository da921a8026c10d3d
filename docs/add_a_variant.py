"""A whole variant of the loop: neighbours on whose cluster two points disagree count half.

The affinity says where the graph comes from, the estimator how the slots are filled. Parameters, checks,
start, loop, labels, exemplars, prediction and callbacks are inherited; the tests run it through all laws.
"""

from smrmf.factorization._manifold import ManifoldFactorization
from smrmf.factorization._slots import AbstractAffinity, FixedPoints, GraphTerm, RankedExemplars, Slots
from smrmf.graph.graphs import heat_graph, rows_to_one, symmetrize


class AgreeingAffinity(AbstractAffinity):
    """Heat weights, half of them where the clusters so far disagree; the state is the weighted graph."""

    def __init__(self, heat):
        self.heat = heat

    def init(self, X):
        """Start with the heat weights as they are; this graph has no term of its own in the objective."""
        return self.heat, GraphTerm(symmetrize(self.heat), 0.0)

    def update(self, state, X, G, H, lam, mu):
        """Weigh every pair of neighbours by the labels that G has now."""
        labels, pairs, weighted = G.argmax(axis=1), self.heat.tocoo(), self.heat.copy()
        weighted.data[labels[pairs.row] != labels[pairs.col]] *= 0.5
        return weighted, GraphTerm(symmetrize(weighted), 0.0)

    def representation(self, state):
        """Let every point be represented by its neighbours, in shares that sum to one."""
        return rows_to_one(state)


class AgreeingRMNMF(ManifoldFactorization):
    """RMNMF on the neighbourhoods on which the clusters agree."""

    def _slots(self, problem, start):
        heat = heat_graph(problem.neighbors, problem.sizes.n_neighbors, "distance")
        exemplars = RankedExemplars(self.exemplar_rule, problem.sizes.n_reported)
        return Slots(AgreeingAffinity(heat), FixedPoints(), exemplars)

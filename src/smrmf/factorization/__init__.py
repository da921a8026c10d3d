"""Factorisations that cluster: most are one augmented-Lagrangian loop with a graph in its slot."""

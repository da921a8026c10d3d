"""Selectors: which rows of a table stand for the rest."""

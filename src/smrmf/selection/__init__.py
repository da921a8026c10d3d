"""Selectors: choose the rows of a table that represent the others."""

"""Selectors: which rows of a table stand for the rest."""

__all__: list[str] = []

"""Clustering that is not a factorisation of the table itself."""

__all__: list[str] = []

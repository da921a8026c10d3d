"""Clustering by matrix factorisation that listens only to the neighbourhoods worth listening to."""

import lazy_loader

__version__ = "0.1.0"

# The public names stand in ``__init__.pyi``, and each is imported when it is first used: ``import smrmf``
# itself costs next to nothing.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

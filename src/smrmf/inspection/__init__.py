"""Questions that people have: how many clusters, what makes one, why is this point here, how sure is it."""

import lazy_loader

# The public names stand in ``__init__.pyi``.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

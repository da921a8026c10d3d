"""Pictures of a fitted model: maps, exemplars, components, and how firm it all is.

Every function draws on the Axes or the figure it is given, else on pyplot's current one, and returns the
Axes. Needs ``pip install 'smrmf[plot]'``.
"""

import lazy_loader

# As in ``smrmf`` itself: a picture is imported, and matplotlib with it, when it is first drawn.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

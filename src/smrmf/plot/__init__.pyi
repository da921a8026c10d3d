"""The public pictures, each imported on first use."""

from ._confidence import confidence as confidence
from ._convergence import convergence as convergence
from ._layout import layout as layout
from ._map import map as map  # noqa: A004
from ._neighborhoods import neighborhoods as neighborhoods
from ._panels import components as components
from ._panels import exemplars as exemplars
from ._suggestion import suggestion as suggestion

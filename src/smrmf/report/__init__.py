"""One self-contained HTML page about a fitted model, to show to somebody.

Needs ``pip install 'smrmf[app]'``.
"""

import lazy_loader

# As in ``smrmf`` itself: jinja2 is imported when the first page is written.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""From a file to numbers, and from results to files; whatever is decided on the way is said in a sentence."""

import lazy_loader

# Each imported when it is first used: a preparation needs scikit-learn, a file of text polars.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "_open": ["open_table"],
        "_preparation": ["TablePreparation"],
        "_read": ["read_table"],
        "_record": ["DataTable", "TableError"],
        "_results": ["write_results"],
    },
)

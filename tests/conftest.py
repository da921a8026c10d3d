"""Settings of all tests."""

from __future__ import annotations

from hypothesis import settings

# The same examples in every run, and no limit on the first one, which compiles the kernels.
settings.register_profile("smrmf", deadline=None, derandomize=True, max_examples=60, database=None)
settings.load_profile("smrmf")

"""Models as files: :func:`save` and :func:`load`."""

from smrmf.persistence._checks import ModelFileError
from smrmf.persistence._files import load, save

__all__ = ["ModelFileError", "load", "save"]

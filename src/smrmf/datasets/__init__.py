"""The data sets of the paper: found in a folder, in the cache or at their origin, verified and cleaned."""

from smrmf.datasets._clean import clean
from smrmf.datasets._fetch import DatasetError
from smrmf.datasets._load import Dataset, DatasetInfo, list_datasets, load
from smrmf.datasets._moons import make_moons_paper

__all__ = [
    "Dataset",
    "DatasetError",
    "DatasetInfo",
    "clean",
    "list_datasets",
    "load",
    "make_moons_paper",
]

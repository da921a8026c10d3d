"""From a table of several types to an array of numbers, for a fit and for new rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from smrmf._validation import NONE, Constraints, InstanceOf, OneOf, check_parameters
from smrmf.tables._columns import Columns, check_names, columns_of
from smrmf.tables._decisions import Decision, decide, finite_numbers
from smrmf.tables._new_rows import NewRows
from smrmf.tables._notes import note_on_empty_rows, notes_on_columns, refusal
from smrmf.tables._record import DataTable, TableError
from smrmf.tables._scaling import scaling, with_still_columns


class TablePreparation(TransformerMixin, BaseEstimator):
    """Make an array of numbers of a table, and say what was decided on the way.

    Numbers are scaled, and missing ones filled with the median of the column. Columns of few words become one
    column for each word. Columns that would only disturb are left out: ids, constants (but for those among
    columns of one unit, as pixels), texts, dates, and what is mostly empty. New rows are treated as those of
    the fit, by the names of the columns.

    Parameters
    ----------
    columns : list of str or None, default=None
        The columns to use, also if they look like ids, and refused if they cannot be; None decides on all.
    scale : {"auto", "standard", "minmax", "none"}, default="auto"
        How columns of numbers are made comparable: by mean and standard deviation, by their range, or not at
        all. "auto" is "standard", but words and columns of up to ten values weigh less where most columns are
        measures, whose neighbourhoods they would part; and "none" where more than 20 columns, and no others,
        have about the same range, as pixels and counts do.

    Attributes
    ----------
    notes_ : list of str
        One sentence for everything that a user must know.
    numbers_ : list of str
        The columns that are used as numbers.
    words_ : dict of list of str
        The columns that are used as words, each with its words.
    feature_names_out_ : list of str
        The columns of the array.
    scale_ : str
        How numbers were made comparable: "standard", "minmax" or "none".
    medians_, offsets_, divisors_ : arrays
        What fills a missing number, what is taken from a number, and what it is divided by.
    word_weight_ : float
        What stands in the column of a word: a mismatch is as far as one standard deviation of numbers, or
        nearer, where it would part neighbours.
    dtype_ : str
        The precision of the array: single if all numbers have it.
    n_features_in_, is_sparse_ : int, bool
        How many columns the table of the fit has, and whether it is sparse, and used as it is.

    Examples
    --------
    >>> import polars
    >>> from smrmf.tables import TablePreparation
    >>> birds = polars.DataFrame(
    ...     {"mass": [12.0, 14.0, None, 16.0], "sex": ["f", "m", "f", "m"], "legs": [2, 2, 2, 2]}
    ... )
    >>> preparation = TablePreparation().fit(birds)
    >>> preparation.transform(birds).round(2)
    array([[-1.22,  0.71,  0.  ],
           [ 0.  ,  0.  ,  0.71],
           [ 0.  ,  0.71,  0.  ],
           [ 1.22,  0.  ,  0.71]])
    >>> preparation.notes_[2]
    "'legs' is 2 in every row: left out."
    """

    _constraints: ClassVar[Constraints] = {
        "columns": (NONE, InstanceOf("a list of names", list, tuple)),
        "scale": (OneOf("auto", "standard", "minmax", "none"),),
    }

    notes_: list[str]
    numbers_: list[str]
    words_: dict[str, list[str]]
    feature_names_out_: list[str]
    scale_: str
    medians_: np.ndarray
    offsets_: np.ndarray
    divisors_: np.ndarray
    word_weight_: float
    dtype_: str
    n_features_in_: int
    is_sparse_: bool

    def __init__(self, columns: Sequence[str] | None = None, *, scale: str = "auto") -> None:
        self.columns = columns
        self.scale = scale

    def fit(self, frame: Any, y: None = None) -> Self:
        """Decide what becomes of every column.

        Parameters
        ----------
        frame : DataTable, polars DataFrame, array or CSR array
            The table; what polars makes a DataFrame of will do, too.
        y : None
            Ignored.

        Returns
        -------
        self
            The fitted preparation.
        """
        check_parameters(type(self).__name__, self.get_params(deep=False), self._constraints)
        if (array := _sparse(frame)) is not None:
            return self._fit_sparse(array, frame)
        columns = columns_of(frame)
        check_names(columns.names, self.columns or ())
        decisions = with_still_columns(
            [
                decide(columns, name, bool(self.columns))
                for name in dict.fromkeys(self.columns or columns.names)
            ]
        )
        unusable = [decision for decision in decisions if decision.role == "left out"]
        if self.columns and unusable:
            raise TableError(refusal(unusable))
        notes = notes_on_columns(decisions, columns.n_rows)
        used = [decision for decision in decisions if decision.role != "left out"]
        if not used:
            raise TableError(f"No column is left to use. {' '.join(notes[1:4])}")
        notes += note_on_empty_rows(_n_empty_rows(columns, used))
        # One step, at the end: a fit that is refused leaves the earlier one as it is.
        self.__dict__ |= _attributes(columns, used, self.scale, notes)
        return self

    def transform(self, frame: Any) -> np.ndarray | sp.csr_array:
        """Return the numbers of a table, for the rows of the fit or for new ones.

        Parameters
        ----------
        frame : DataTable, polars DataFrame, array or CSR array
            The table, with the columns of the fit in any order, and perhaps others, which are ignored.

        Returns
        -------
        X : array of shape (n_rows, n_columns_out)
            The numbers; of a sparse table a CSR array.
        """
        check_is_fitted(self)
        if (array := _sparse(frame)) is not None or self.is_sparse_:
            return self._sparse_as_it_is(array)
        columns = self._columns(frame)
        # Made once, and filled column by column: there is never a second copy of the whole table.
        X = np.zeros((columns.n_rows, len(self.feature_names_out_)), dtype=self.dtype_)
        for place, name in enumerate(self.numbers_):
            values = self._filled(columns, place, name)
            np.subtract(values, self.offsets_[place], out=X[:, place], casting="same_kind")
            X[:, place] /= self.divisors_[place]
        place = len(self.numbers_)
        for name, known in self.words_.items():
            words = columns.words(name)
            for word in known:
                X[(words == word).fill_null(False).to_numpy(), place] = self.word_weight_
                place += 1
        return X

    def inverse_transform(self, X: Any) -> Any:
        """Return rows of the array in the units of the table: numbers as they were, words as 1 or 0.

        Parameters
        ----------
        X : array, frame or CSR array of shape (n_rows, n_columns_out)
            What :meth:`transform` has returned; missing numbers come back as what they were filled with.

        Returns
        -------
        units : array or CSR array of shape (n_rows, n_columns_out)
            The same rows.
        """
        check_is_fitted(self)
        if self.is_sparse_:
            return X
        count = len(self.numbers_)
        units = np.array(X, dtype=self.dtype_)
        numbers = units[:, :count] * self.divisors_ + self.offsets_
        # What is left of a zero is no number of the table.
        dust = 4 * np.finfo(self.dtype_).eps * (np.abs(self.offsets_) + self.divisors_)
        units[:, :count] = np.where(np.abs(numbers) <= dust, 0, numbers)
        units[:, count:] = units[:, count:] > self.word_weight_ / 2
        return units

    def notes_on(self, frame: Any) -> list[str]:
        """Return what a user must know of new rows: filled gaps, and words that the fit has not seen.

        Parameters
        ----------
        frame : DataTable, polars DataFrame, array or CSR array
            The table, as for :meth:`transform`.

        Returns
        -------
        notes : list of str
            One sentence for every column that has some, or for many.
        """
        check_is_fitted(self)
        if self.is_sparse_:
            return []
        rows = NewRows(self.numbers_, self.words_)
        rows.add(self._columns(frame))
        return rows.notes()

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns of the array.

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        names : array of str
            Columns of numbers by their names, those of words as ``name=word``.
        """
        check_is_fitted(self)
        return np.array(self.feature_names_out_, dtype=object)

    def _columns(self, frame: Any) -> Columns:
        columns = columns_of(frame)
        check_names(columns.names, [*self.numbers_, *self.words_])
        return columns

    def _filled(self, columns: Columns, place: int, name: str) -> np.ndarray:
        values, missing = finite_numbers(columns, name)
        return np.where(missing, values.dtype.type(self.medians_[place]), values) if missing.any() else values

    def _fit_sparse(self, array: sp.csr_array, frame: Any) -> Self:
        if self.scale not in ("auto", "none") or self.columns:
            raise TableError("A sparse table is used as it is: leave columns and scale at their defaults.")
        width = array.shape[1]
        names = frame.names if isinstance(frame, DataTable) else [f"x{place}" for place in range(width)]
        note = f"The table is sparse: its {width} columns are used as they are, without scaling."
        self.__dict__ |= {
            "numbers_": names,
            "words_": {},
            "feature_names_out_": names,
            "scale_": "none",
            "n_features_in_": width,
            "is_sparse_": True,
            "notes_": [note],
        }
        return self

    def _sparse_as_it_is(self, array: sp.csr_array | None) -> sp.csr_array:
        if array is None or not self.is_sparse_:
            fitted, given = ("sparse", "dense") if self.is_sparse_ else ("dense", "sparse")
            raise TableError(
                f"The table of the fit is {fitted}, and this one {given}: give both in one form."
            )
        if array.shape[1] != self.n_features_in_:
            said = f"The table has {array.shape[1]} columns, but that of the fit has {self.n_features_in_}"
            raise TableError(f"{said}: give the same columns.")
        return array


def _attributes(columns: Columns, used: list[Decision], scale: str, notes: list[str]) -> dict[str, Any]:
    """Return all that a fit sets."""
    numbers = [decision for decision in used if decision.role == "numbers"]
    words = {decision.name: list(decision.words) for decision in used if decision.role == "words"}
    names = [decision.name for decision in numbers]

    def filled(place: int) -> np.ndarray:
        values, missing = finite_numbers(columns, names[place])
        return np.where(missing, numbers[place].median, values)

    chosen = scaling(scale, numbers, len(words), filled)
    is_single = bool(names) and all(columns.is_single(name) for name in names)
    return {
        "numbers_": names,
        "words_": words,
        "feature_names_out_": names + _word_names(words, names),
        "scale_": chosen.scale,
        "medians_": np.array([decision.median for decision in numbers]),
        "offsets_": chosen.offsets,
        "divisors_": chosen.divisors,
        "word_weight_": float(chosen.word_weight),
        "dtype_": "float32" if is_single else "float64",
        "n_features_in_": len(columns.names),
        "is_sparse_": False,
        "notes_": notes + ([chosen.note] if chosen.note else []),
    }


def _word_names(words: dict[str, list[str]], taken: list[str]) -> list[str]:
    """Return what to call the columns of words, all differently, also where a column is called ``a=b``."""
    found = dict.fromkeys(taken)
    for name, known in words.items():
        for word in known:
            called = f"{name}={word}"
            while called in found:
                called += " (word)"
            found[called] = None
    return list(found)[len(taken) :]


def _n_empty_rows(columns: Columns, used: list[Decision]) -> int:
    """Return how many rows have no value in any column that is used."""
    if not all(decision.n_missing for decision in used):
        return 0
    empty = np.ones(columns.n_rows, dtype=bool)
    for decision in used:
        if decision.role == "numbers":
            empty &= np.isnan(columns.numbers(decision.name))
        else:
            empty &= columns.words(decision.name).is_null().to_numpy()
    return int(empty.sum())


def _sparse(frame: Any) -> sp.csr_array | None:
    array = frame.frame if isinstance(frame, DataTable) else frame
    return sp.csr_array(array) if sp.issparse(array) else None

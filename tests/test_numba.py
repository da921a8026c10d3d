"""Kernels are compiled on their first call only."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from types import FunctionType

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from patience import run_command

from smrmf._numba import CompiledKernel, kernel
from smrmf.graph import candidates, dense_points, exemplars, graphs, partitions, sparse_points
from smrmf.kernels import balls, distances, lasso, prox, row_sparse, simplex

OFFSET = 10.0


@kernel
def triple(x):
    """Multiply by three."""
    return 3.0 * x


@kernel
def triple_and_shift(x):
    return triple(x) + OFFSET


@kernel
def sum_of_triples(values, out):
    for i in range(values.shape[0]):
        out[i] = triple_and_shift(values[i]) + np.sqrt(values[i])


def in_a_new_process(code):
    done = run_command([sys.executable, "-c", code])
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_does_not_load_numba():
    code = "import sys, smrmf, smrmf.kernels.row_sparse; print('numba' in sys.modules)"
    assert in_a_new_process(code).strip() == "False"


def test_first_call_loads_numba():
    code = (
        "import sys, numpy as np; from smrmf.kernels.balls import project_simplex;"
        "project_simplex(np.zeros((1, 2))); print('numba' in sys.modules)"
    )
    assert in_a_new_process(code).strip() == "True"


def test_kernel_keeps_its_name_and_docstring():
    assert triple.__name__ == "triple"
    assert triple.__doc__ == "Multiply by three."
    assert triple.__module__ == __name__


def test_kernels_call_kernels_and_see_module_constants():
    out = np.empty(3)
    sum_of_triples(np.array([0.0, 1.0, 4.0]), out)
    assert_array_equal(out, [10, 14, 24])


def test_kernel_is_compiled_once():
    assert triple.compile() is triple.compile()
    assert triple_and_shift.compile() is triple_and_shift.compile()


def test_first_calls_from_several_threads_agree():
    @kernel
    def square(x):
        return x * x

    with ThreadPoolExecutor(4) as executor:
        assert list(executor.map(square, range(8))) == [x * x for x in range(8)]


def test_compiled_kernel_handles_nan_and_infinity():
    assert np.isnan(triple(np.nan))
    assert triple(-np.inf) == -np.inf


@pytest.mark.parametrize(
    "module",
    [
        *(balls, candidates, dense_points, distances, exemplars, graphs, lasso, prox, row_sparse, simplex),
        partitions,
        sparse_points,
    ],
)
def test_every_kernel_of_the_library_says_what_it_does(module):
    kernels = [value for value in vars(module).values() if isinstance(value, CompiledKernel)]
    assert kernels
    assert all(found.__doc__ and found.__name__ == found.function.__name__ for found in kernels)


def test_a_changed_callee_or_constant_changes_the_name_in_the_cache(monkeypatch):
    @kernel
    def double(x):
        return 2.0 * x

    module = sys.modules[__name__]
    before = sum_of_triples.fingerprint()
    assert before == sum_of_triples.fingerprint()
    with monkeypatch.context() as patch:
        patch.setattr(module, "triple", double)
        assert sum_of_triples.fingerprint() != before
    monkeypatch.setattr(module, "OFFSET", 11.0)
    assert sum_of_triples.fingerprint() != before


def test_another_rounding_changes_the_name_in_the_cache(monkeypatch):
    before = triple.fingerprint()
    monkeypatch.setattr("smrmf._numba.FASTMATH", {"contract"})
    assert triple.fingerprint() != before


def double(x):
    return 2.0 * x


def test_a_kernel_without_a_folder_for_its_cache_is_compiled_without_one():
    # As in a folder that nobody may write to: numba knows no place for what has no file.
    nowhere = double.__code__.replace(co_filename="<nowhere>")
    assert kernel(FunctionType(nowhere, {"__name__": __name__}, "double"))(2.0) == 4.0


# Kernels that call others, where no file may grow: the disk is full.
FULL_DISK = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
import numpy as np
from smrmf._parallel import SERIAL
from smrmf.graph.neighbors import find_neighbors
print(find_neighbors(np.arange(40.0).reshape(20, 2), 3, pool=SERIAL).indices.shape)
"""


def test_a_full_disk_costs_the_cache_of_kernels_and_no_result(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    done = run_command([sys.executable, "-c", FULL_DISK], env=environment)
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout.strip() == "(20, 3)"


# Prints what kernels that call other kernels compute, to the last bit.
NESTED = """
import hashlib
import numpy as np
from smrmf.kernels.simplex import solve_columns, solve_weighted_rows
rng = np.random.default_rng(0)
U, D = rng.random((60, 60)), rng.random((60, 60))
S = np.empty_like(U)
solve_weighted_rows(U, D, 0, S)
z, level = np.empty(3600), np.empty(60)
solve_columns(np.arange(0, 3601, 60), D.ravel(), np.full(60, 0.3), np.full(60, np.inf), z, level)
print(hashlib.sha256(S.tobytes() + z.tobytes() + level.tobytes()).hexdigest())
"""


def test_code_from_the_cache_is_the_code_that_was_compiled(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", NESTED]
    compiled, cached = (run_command(command, env=environment).stdout for _ in range(2))
    assert list(tmp_path.rglob("*.nbi"))
    assert compiled == cached != ""

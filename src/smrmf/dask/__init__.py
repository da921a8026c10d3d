"""The same methods on Dask arrays, for more data than one machine holds."""

try:
    import dask.array  # noqa: F401
    import distributed  # noqa: F401
except ImportError as error:
    raise ImportError("smrmf.dask needs Dask: pip install 'smrmf[dask]'.") from error

from smrmf.dask._estimator import FastSMRMF

__all__ = ["FastSMRMF"]

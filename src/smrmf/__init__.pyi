"""The public names, each imported on first use: one line here makes a name public."""

from . import metrics as metrics
from . import plot as plot
from .factorization._checkpoint import Checkpoint as Checkpoint
from .factorization._start import nndsvd as nndsvd
from .factorization.amrmf import AMRMF as AMRMF
from .factorization.apmf import APMF as APMF
from .factorization.deep_semi_nmf import DeepSemiNMF as DeepSemiNMF
from .factorization.fast_smrmf import FastSMRMF as FastSMRMF
from .factorization.gnmf import GNMF as GNMF
from .factorization.nmf import NMFClustering as NMFClustering
from .factorization.rmnmf import RMNMF as RMNMF
from .factorization.selective_rmnmf import SelectiveRMNMF as SelectiveRMNMF
from .factorization.smrmf import SMRMF as SMRMF
from .persistence._files import load as load
from .persistence._files import save as save
from .selection.ds3 import DS3 as DS3
from .selection.esc import ESC as ESC
from .selection.ipm import IPM as IPM
from .selection.kdpp import KDPP as KDPP

__version__: str

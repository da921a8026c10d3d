"""Questions to a table and to a fitted model, each imported on first use."""

from ._columns import ColumnsWarning as ColumnsWarning
from ._columns import check_columns as check_columns
from ._explanation import Explanation as Explanation
from ._explanation import explain as explain
from ._neighborhoods import neighborhoods as neighborhoods
from ._profiles import cluster_profiles as cluster_profiles
from ._suggestion import Suggestion as Suggestion
from ._suggestion import suggest_n_clusters as suggest_n_clusters
from ._table import PlainTable as PlainTable

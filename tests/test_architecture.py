"""The rooms of the house: their modules, imports that go down, classes that are abstract or final."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "smrmf"

# From the ground up: a module imports from its own line and from those above it.
LAYERS = [
    [
        "_numba",
        "_progress",
        "_parallel",
        "_scratch",
        "_validation",
        "_arrays",
        "_files",
        "_records",
        "sharing",
        "_estimator",
    ],
    ["kernels"],
    ["graph"],
    ["selection", "factorization", "metrics", "datasets"],
    ["inspection"],
    ["dask", "plot", "persistence", "tables"],
    ["report"],
    ["tasks"],
    ["cli"],
    ["__main__"],
]
# Rooms of one layer do not know each other, but for this edge: the default selector.
SIDEWAYS = {("factorization.selective_rmnmf", "selection.ipm")}
# Inside the factorisations the path of the data goes one way.
ONE_WAY = {
    "factorization._points": {"_start", "_slots", "_loop", "_manifold", "_new_points"},
    "factorization._start": {"_slots", "_loop", "_manifold", "_new_points"},
    "factorization._slots": {"_loop", "_manifold", "_memory", "_new_points"},
    "factorization._operations": {"_loop", "_manifold", "_start", "_new_points"},
    "factorization._loop": {"_manifold", "_new_points"},
}
# Prediction cannot depend on how a model was fitted: all that it may know of the library.
KNOWN_TO_NEW_POINTS = {"_arrays", "_estimator", "_parallel", "_validation", "graph", "kernels"}
MODULES = {
    "": {
        *("__main__", "_arrays", "_estimator", "_files", "_numba", "_parallel", "_scratch", "_validation"),
        *("_progress", "_records", "metrics", "sharing"),
    },
    "kernels": {
        *("balls", "distances", "lasso", "nonnegative_svd", "principal_axes", "prox"),
        *("row_sparse", "scaling", "semi_nonnegative", "simplex", "thin_svd", "truncated_svd"),
    },
    "graph": {
        *("approximate", "cells", "coarse", "given_neighbors", "search"),
        *("candidates", "columns", "components", "consensus", "copies", "dense_points", "directions"),
        *("duplicates", "exemplars"),
        *("grains", "graphs", "groups", "halves", "labels", "layout", "means", "membership", "merging"),
        *("neighbors", "packing", "partitions", "sparse_points", "spectrum"),
    },
    "factorization": {
        *("_alternating", "_certainty", "_checkpoint", "_closed_form", "_dissimilarity", "_fit_key"),
        *("_footprint", "_loop", "_manifold", "_memory", "_operations"),
        *("_new_points", "_plane", "_points", "_projected", "_results", "_row_sparse", "_slots", "_start"),
        *("amrmf", "apmf", "deep_semi_nmf", "fast_smrmf", "gnmf", "nmf", "rmnmf", "selective_rmnmf", "smrmf"),
    },
    "selection": {"_base", "_determinantal", "_dissimilarities", "_prices", "ds3", "esc", "ipm", "kdpp"},
    "inspection": {"_columns", "_explanation", "_neighborhoods", "_profiles", "_suggestion", "_table"},
    "datasets": {"_catalogue", "_clean", "_fetch", "_load", "_moons", "_readers", "_unpack"},
    "dask": {
        *(
            "_affinity",
            "_blocks",
            "_consensus",
            "_estimator",
            "_fit",
            "_graph",
            "_halo",
            "_input",
            "_largest",
        ),
        *("_new_points", "_operations", "_results", "_search", "_shuffle", "_spectrum", "_start"),
    },
    "plot": {
        *("_cells", "_confidence", "_convergence", "_layout", "_map", "_model", "_neighborhoods", "_panels"),
        *("_style", "_suggestion", "_thumbnails"),
    },
    "persistence": {"_checks", "_files"},
    "tables": {
        *("_array_files", "_blocks", "_cells", "_columns", "_decisions", "_delimited", "_delimited_blocks"),
        *(
            "_mapped",
            "_new_rows",
            "_notes",
            "_open",
            "_parquet",
            "_preparation",
            "_read",
            "_record",
            "_results",
        ),
        "_scaling",
    },
    "report": {
        *("_certainty", "_code", "_compared", "_evidence", "_exemplars", "_findings", "_images", "_kept"),
        *("_map", "_page", "_profiles", "_rows", "_sections", "_subject", "_table", "_words", "_write"),
    },
    "tasks": {
        *("_ask", "_demo", "_fit", "_growing", "_methods", "_on_disk", "_plain", "_predict", "_progress"),
        "_results",
        *("_scores", "_select", "_sentences", "_tables", "_wording"),
    },
    "cli": {
        *("_options", "_output", "_shared", "data", "demo", "explain", "fit", "predict", "reproduce"),
        *("select", "suggest"),
    },
}


def name(path):
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def imports():
    """Yield every import of one module of the library by another, also those inside functions."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
            found = []
            if isinstance(node, ast.Import):
                found = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path} has a relative import"
                whole = node.module == "smrmf"
                found = [f"smrmf.{alias.name}" for alias in node.names] if whole else [node.module]
            yield from ((name(path), m.removeprefix("smrmf.")) for m in found if m.startswith("smrmf."))


def layer(module):
    room = module.partition(".")[0]
    return next(level for level, rooms in enumerate(LAYERS) if room in rooms)


def test_every_module_has_its_room():
    found = {}
    for path in SOURCE.rglob("*.py"):
        if path.name != "__init__.py":
            room, _, module = name(path).rpartition(".")
            found.setdefault(room, set()).add(module)
    assert found == MODULES


def test_imports_go_down():
    for module, imported in imports():
        if module == "__init__" or (module, imported) in SIDEWAYS:
            continue
        same_room = module.partition(".")[0] == imported.partition(".")[0]
        ground = layer(module) == 0
        below = layer(imported) < layer(module)
        assert below or same_room or (ground and layer(imported) == 0), f"{module} imports {imported}"


@pytest.mark.parametrize("module", ONE_WAY)
def test_the_path_of_the_data_goes_one_way(module):
    known = {imported.rpartition(".")[2] for importer, imported in imports() if importer == module}
    assert known
    assert not known & ONE_WAY[module]


def test_new_points_know_nothing_of_the_fit():
    known = {imported for importer, imported in imports() if importer == "factorization._new_points"}
    assert known
    assert {module.partition(".")[0] for module in known} <= KNOWN_TO_NEW_POINTS


def test_the_page_names_every_room():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf8")
    rooms = [room for rooms in LAYERS for room in rooms]
    assert [room for room in rooms if f"`{room}`" not in page and f"`{room}/`" not in page] == []
    assert all(f"{module}.py`" in page for module, _ in [edge[0].split(".")[::-1] for edge in SIDEWAYS])


# Classes


# Written again on purpose: an estimator inherits its parameters whole or writes them whole, and its tags are
# added to those of its bases.
WRITTEN_WHOLE, ADDED_TO = "__init__", "__sklearn_tags__"


def classes():
    """Return every class of the packages and of the variant in the documentation, by its name."""
    found = {}
    for path in [*(ROOT / "src").rglob("*.py"), ROOT / "docs" / "add_a_variant.py"]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
            if isinstance(node, ast.ClassDef):
                # What has the same name on Dask arrays does the same.
                called = f"dask.{node.name}" if path.parent.name == "dask" else node.name
                assert called not in found, f"two classes are called {called}"
                found[called] = node
    return found


def ancestors(name, known):
    """Return the names of the classes of ours that a class derives from, directly or not."""
    found = set()
    for base in known[name].bases:
        # AbstractPoints[None], abc.ABC and ABC are all known by their last name.
        base = base.value if isinstance(base, ast.Subscript) else base
        parent = base.attr if isinstance(base, ast.Attribute) else base.id
        if parent in known:
            found |= {parent} | ancestors(parent, known)
    return found


def methods(node):
    return {item.name: item for item in node.body if isinstance(item, ast.FunctionDef)}


def finished(method):
    """Tell whether a method does something: abstract ones and stubs only say what there must be."""
    if any(ast.unparse(mark).endswith("abstractmethod") for mark in method.decorator_list):
        return False
    # What is left after the docstring and "...".
    steps = [
        step
        for step in method.body
        if not (isinstance(step, ast.Expr) and isinstance(step.value, ast.Constant))
    ]
    return bool(steps) and not ast.unparse(steps[0]).startswith("raise NotImplementedError")


def overridden(known):
    """Yield every finished method that a class further down writes again: both classes, and the method."""
    for name, node in known.items():
        for ancestor in ancestors(name, known):
            ready = {method for method, body in methods(known[ancestor]).items() if finished(body)}
            yield from ((ancestor, name, methods(node)[method]) for method in ready & methods(node).keys())


def test_a_class_is_abstract_or_final():
    known = classes()
    exceptions = {WRITTEN_WHOLE: set(), ADDED_TO: set()}
    for owner, other, method in overridden(known):
        assert method.name in exceptions, f"{other}.{method.name} overrides the finished one of {owner}"
        exceptions[method.name].add("super()" in ast.unparse(method))
    assert exceptions == {WRITTEN_WHOLE: {False}, ADDED_TO: {True}}


def kernels():
    for path in [*SOURCE.glob("kernels/*.py"), *SOURCE.glob("graph/*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
            marks = [d.id for d in getattr(node, "decorator_list", []) if isinstance(d, ast.Name)]
            if "kernel" in marks:
                yield path, node


def test_long_signatures_of_kernels_say_what_goes_in_and_out():
    checked = 0
    for path, node in kernels():
        lines = path.read_text(encoding="utf8").splitlines()
        if len(node.args.args) > 5:
            checked += 1
            marked = [lines[argument.lineno - 1] for argument in node.args.args]
            assert all("# IN" in line or "# OUT" in line for line in marked), (path.name, node.name)
    assert checked > 10

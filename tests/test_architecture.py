"""The rooms of the house: which modules there are, and that each imports only what lies below it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "smrmf"

# From the ground up: a module imports from its own line and from those above it.
LAYERS = [
    ["_numba", "_parallel", "_validation", "sharing", "_estimator"],
    ["kernels"],
    ["graph"],
    ["selection", "factorization", "metrics", "datasets"],
    ["cli"],
]
# Rooms of one layer do not know each other, but for this edge: the default selector.
SIDEWAYS = {("factorization.selective_rmnmf", "selection.ipm")}
# Inside the factorisations the path of the data goes one way.
ONE_WAY = {
    "factorization._points": {"_start", "_slots", "_loop", "_manifold", "_new_points"},
    "factorization._new_points": {"_points", "_start", "_slots", "_loop", "_manifold"},
    "factorization._start": {"_slots", "_loop", "_manifold", "_new_points"},
    "factorization._slots": {"_loop", "_manifold", "_new_points"},
    "factorization._loop": {"_manifold", "_new_points"},
}
MODULES = {
    "": {"_estimator", "_numba", "_parallel", "_validation", "metrics", "sharing"},
    "kernels": {
        *("balls", "determinantal", "distances", "lasso", "nonnegative_svd", "principal_axes", "prox"),
        *("row_sparse", "scaling", "semi_nonnegative", "simplex"),
    },
    "graph": {"exemplars", "graphs", "labels", "neighbors"},
    "factorization": {
        *("_alternating", "_closed_form", "_dissimilarity", "_loop", "_manifold", "_new_points", "_points"),
        *("_projected", "_row_sparse", "_slots", "_start"),
        *("amrmf", "apmf", "deep_semi_nmf", "fast_smrmf", "gnmf", "nmf", "rmnmf", "selective_rmnmf", "smrmf"),
    },
    "selection": {"_base", "ds3", "esc", "ipm", "kdpp"},
    "datasets": {"_catalogue", "_clean", "_fetch", "_load", "_moons", "_readers"},
    "cli": {"_shared", "data", "reproduce"},
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


def test_the_page_names_every_room():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf8")
    rooms = [room for rooms in LAYERS for room in rooms]
    assert [room for room in rooms if f"`{room}`" not in page and f"`{room}/`" not in page] == []
    assert all(f"{module}.py`" in page for module, _ in [edge[0].split(".")[::-1] for edge in SIDEWAYS])


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

"""The package of the reproduction: what it imports, and what it must not know."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest
from patience import run_command

import smrmf
import smrmf_reproduce
from smrmf import datasets, metrics, sharing
from smrmf_reproduce.run.plan import Plan

FOLDER = Path(smrmf_reproduce.__file__).parent
FILES = sorted(FOLDER.rglob("*.py"))
# All that the reproduction may know of the library, by dotted name.
MODULES = {module.__name__: module for module in (smrmf, datasets, metrics, sharing)}
PUBLIC = {*MODULES, *(f"{name}.{public}" for name, module in MODULES.items() for public in module.__all__)}


def imported(tree):
    """Yield everything that a file imports: under which name, and its dotted one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.asname or alias.name, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)


def taken(tree):
    """Yield the dotted name of everything that a file takes out of an imported module of the library."""
    names = dict(imported(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = names.get(node.value.id)
            if module in MODULES:
                yield f"{module}.{node.attr}"


def layer(name):
    """Return 0 for run, 1 for report, 2 for what joins them."""
    return {"run": 0, "report": 1}.get(name.split(".")[1], 2)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_it_imports_public_names_and_only_from_below(path):
    own = ".".join(("smrmf_reproduce", *path.relative_to(FOLDER).with_suffix("").parts))
    for _, name in imported(ast.parse(path.read_text())):
        assert not any(part.startswith("_") and part != "__future__" for part in name.split(".")), name
        assert not name.startswith("joblib.externals")
        assert name.split(".")[0] != "smrmf" or name in PUBLIC, name
        if name.startswith("smrmf_reproduce.") and "__init__" not in own:
            assert layer(name) <= layer(own), f"{own} imports {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_what_it_takes_out_of_a_module_is_public_too(path):
    assert [name for name in taken(ast.parse(path.read_text())) if name not in PUBLIC] == []


@pytest.fixture(scope="module")
def methods():
    """Names of the methods that the plan describes, without those of scikit-learn."""
    return set(Plan.read().methods("compared", "baseline", "ablation", "ours", "defaults"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_no_method_is_named_in_the_code(path, methods):
    """Facts of methods stand in the plan: docstrings may mention one, the code knows none."""
    tree = ast.parse(path.read_text())
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(n.body[0].value) for n in ast.walk(tree) if isinstance(n, documented) and ast.get_docstring(n)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            words = {word.strip(".,;:()'\"").removesuffix("'s") for word in node.value.split()}
            if path.name == "markdown.py":
                words -= {"SMRMF"}  # the title of the page names the paper
            assert not words & methods, (node.lineno, words & methods)


def test_the_command_line_imports_it_only_when_asked():
    code = "import sys, smrmf.cli; sys.exit(any(name.startswith('smrmf_reproduce') for name in sys.modules))"
    assert run_command([sys.executable, "-c", code]).returncode == 0

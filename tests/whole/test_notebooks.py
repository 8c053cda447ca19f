"""The notebooks run from top to bottom, and what they claim about their results holds."""

import ast
import json
import linecache

import pytest
from support.helpers import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LARGEST = 200_000              # bytes: they are read on web pages


def cells(notebook, kind):
    content = json.loads(notebook.read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in content["cells"] if cell["cell_type"] == kind]


def test_there_is_one_for_each_field():
    names = {notebook.stem for notebook in NOTEBOOKS}
    assert names >= {"circuit", "mechanism", "pde", "reactor_fit", "battery"}


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_cells_run_in_order(notebook, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    namespace = {"__name__": "__main__", "display": print}
    for number, code in enumerate(cells(notebook, "code")):
        name = f"<cell {number} of {notebook.name}>"
        linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
        exec(compile(code, name, "exec"), namespace)
    assert pyplot.get_fignums()
    pyplot.close("all")
    pyplot.rcdefaults()


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_results_are_checked_in_the_notebook(notebook):
    code = ast.parse("\n".join(cells(notebook, "code")))
    assert sum(isinstance(node, ast.Assert) for node in ast.walk(code)) >= 3
    assert cells(notebook, "markdown")[0].startswith("# ")
    assert notebook.stat().st_size < LARGEST

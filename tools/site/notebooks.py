"""Run the notebooks and keep what they show: ``python tools/site/notebooks.py [notebook ...]``.

Needs nbclient and ipykernel. Pictures are stored as they are shown; what differs from machine to
machine, such as versions, is left out.
"""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "notebooks"


def run(path: Path) -> None:
    """Run one notebook from top to bottom and write it back."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, kernel_name="python3", record_timing=False).execute()
    notebook.metadata.language_info = {"name": "python"}
    for cell in notebook.cells:
        cell.metadata = {}
    nbformat.write(notebook, path)
    print(path.name, path.stat().st_size // 1024, "kB")


if __name__ == "__main__":
    for path in [Path(name) for name in sys.argv[1:]] or sorted(FOLDER.glob("*.ipynb")):
        run(path)

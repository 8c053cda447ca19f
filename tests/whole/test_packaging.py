"""What is packed: a source distribution can do what a clone can, and versions agree."""

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib

import pytest
from support.helpers import ROOT

from tether import gallery

VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


def test_the_source_distribution_holds_what_the_repository_holds(tmp_path):
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("not run in the repository")
    pytest.importorskip("setuptools", minversion="77")
    pytest.importorskip("Cython")
    copy = tmp_path / "copy"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(copy)], check=True)
    for name in ("MANIFEST.in", "setup.py", "pyproject.toml"):       # as they are, not as committed
        shutil.copy(ROOT / name, copy / name)
    subprocess.run(
        [sys.executable, "-c", "import setuptools.build_meta as b; b.build_sdist('..')"],
        cwd=copy, check=True, capture_output=True,
    )
    listed = subprocess.check_output(["git", "ls-files"], cwd=copy, text=True).splitlines()
    expected = {name for name in listed if not name.startswith((".github/", ".gitignore"))}
    with tarfile.open(tmp_path / f"tether-{VERSION}.tar.gz") as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    assert expected <= packed
    assert not {name for name in packed if name.endswith((".c", ".so", ".pyd", ".pyc"))}


@pytest.mark.parametrize("file", ["CITATION.cff", "recipe/recipe.yaml", "src/tether/__init__.py"])
def test_versions_agree(file):
    text = (ROOT / file).read_text(encoding="utf-8")
    assert re.findall(r"^\s*(?:__version__ = |version: )\"?([\d.]+)\"?$", text, re.M) == [VERSION]


def test_the_conda_recipe_tests_what_there_is():
    recipe = (ROOT / "recipe/recipe.yaml").read_text(encoding="utf-8")
    solved = re.findall(r"tether solve (\S+)", recipe)
    assert solved
    assert set(solved) <= set(gallery.names())
    files = recipe.partition("  - files:\n")[2].partition("    requirements:\n")[0]
    listed = re.findall(r"- (\S+)", files)
    missing = [name for name in listed if not (ROOT / name).exists()]
    assert not missing
    needed = {".ci/", "benchmarks/", "docs/", "notebooks/", "src/", "tests/", "mkdocs.yml"}
    assert needed <= set(listed), files

"""The reference names everything public, and versions agree wherever they are written."""

import ast
import contextlib
import doctest
import inspect
import json
import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import dplasso

OPTIONAL = ("arrow", "onnx", "plot", "ray", "storage")
ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


def test_the_reference_has_every_public_name_once():
    pages = "\n".join(page.read_text() for page in (DOCS / "api").glob("*.md"))
    named = re.findall(r"^::: dplasso\.(\w+)$", pages, re.MULTILINE)
    assert sorted([*named, "__version__"]) == sorted(dplasso.__all__)


SOURCE = ROOT / "src"
EXAMPLES = [
    ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    for path in sorted(SOURCE.rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("module", EXAMPLES)
def test_examples_in_docstrings_run(module):
    results = doctest.testmod(import_module(module))
    assert results.attempted
    assert not results.failed


def test_signatures_are_short_and_the_extras_are_all_named():
    for name in dplasso.__all__:
        public = getattr(dplasso, name)
        for one in [public, *(getattr(public, part) for part in dir(public) if part[0] != "_")]:
            with contextlib.suppress(TypeError, ValueError):
                assert "numpy._typing" not in str(inspect.signature(one)), (name, one)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    page = (DOCS / "install.md").read_text()
    assert not [one for one in project["optional-dependencies"] if f"`{one}`" not in page]


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text().partition("nav:")[2]
    for page in DOCS.rglob("*.md"):
        assert f": {page.relative_to(DOCS)}\n" in navigation, page


def test_notebooks_are_kept_with_outputs_and_what_they_import_exists():
    notebooks = sorted((DOCS / "gallery").glob("*.ipynb"))
    assert len(notebooks) == 5
    for notebook in notebooks:
        cells = json.loads(notebook.read_text())["cells"]
        outputs = [output for cell in cells for output in cell.get("outputs", [])]
        assert outputs
        assert not [one for one in outputs if one["output_type"] == "error"]
        assert notebook.stat().st_size < 300_000
        code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
        imports = [node for node in ast.parse(code).body if isinstance(node, ast.ImportFrom)]
        own = [node for node in imports if node.module.split(".")[0] in ("dplasso", "evidence")]
        assert own
        for node in own:
            module = import_module(node.module)
            assert all(hasattr(module, alias.name) for alias in node.names), ast.unparse(node)


def test_versions_agree_and_the_conda_recipe_asks_for_what_the_package_does():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == dplasso.__version__
    assert f"\nversion: {dplasso.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    recipe = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text()
    assert f'  version: "{dplasso.__version__}"\n' in recipe
    bounds = dict(re.findall(r"^    - (\S+) >=(\S+)$", recipe, re.MULTILINE))
    names = {"matplotlib": "matplotlib-base", "ray": "ray-core"}
    extras = project["optional-dependencies"]
    asked = [*project["dependencies"], *(asked for one in OPTIONAL for asked in extras[one])]
    wanted = dict(one.split(">=") for one in asked)
    wanted["python"] = project["requires-python"].removeprefix(">=")
    assert bounds.pop("hatchling")
    assert bounds == {names.get(name, name): bound for name, bound in wanted.items()}

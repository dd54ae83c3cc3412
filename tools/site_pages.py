"""Pages of the site that are made when it is built: MkDocs calls the functions named on_*.

README, CHANGELOG, CONTRIBUTING and SECURITY stay where GitHub shows them and become pages; so do
the notebooks, with the outputs they were saved with, every command, and every error message.
"""

import base64
import json
import os
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from messages import KINDS, messages
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from rich.text import Text

from dplasso import __version__
from dplasso.cli.app import app

ROOT = Path(__file__).parent.parent
GALLERY = ROOT / "docs" / "gallery"
FRONT = ROOT / "tools" / "front.md"
IMAGES = ROOT / "docs" / "images"
RESULTS = ROOT / "evidence" / "results"

ROOT_PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
# The front page has no pages beside it to be listed.
# The section of a command in the navigation, by its first word; "Models" for the others.
_SECTIONS = dict.fromkeys(("plan", "budget", "audit"), "Budgets")
_SECTIONS |= dict.fromkeys(("convert", "data", "schema"), "Data") | {"ledger": "Ledger"}
_ALONE = "---\nhide: [navigation]\n---\n"
_LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)(#[^)\s]*)?\)")
_NOT_WORDS = re.compile(r"(<a .*?</a>|<pre.*?</pre>|<code>.*?</code>|<[^>]*>)", re.DOTALL)
_FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
# How Python documents int, float and str; these show a default under its type.
_OF_TYPES = (
    "int([x]) -&gt; integer",
    "number to a floating point number",
    "str(object=",
    "bool(x)",
)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the commands and the notebooks into the navigation, and the version on every page."""
    config.copyright = f"dplasso {__version__}. {config.copyright}"
    sections: dict[str, list[dict[str, str]]] = {}
    for name, _ in _commands():
        section = _SECTIONS.get(name.partition(" ")[0], "Models")
        sections.setdefault(section, []).append({name: _command_page(name)})
    commands: list[Any] = [{"dplasso": "commands/index.md"}]
    commands += [{section: pages} for section, pages in sections.items()]
    gallery = [{_title(_cells(path)): f"gallery/{path.stem}.md"} for path in _notebooks()]
    lists: dict[str, Any] = {"COMMANDS": commands, "GALLERY": gallery}
    for part in config.nav or []:
        for pages in part.values() if isinstance(part, dict) else []:
            for page in pages if isinstance(pages, list) else []:
                for title, target in page.items():
                    page[title] = lists.get(target, target) if isinstance(target, str) else target
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made, and the pictures of the evidence."""

    def add(uri: str, content: str | bytes) -> None:
        files.append(File.generated(config, uri, content=content))

    for name, uri in ROOT_PAGES.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        add(uri, _front(text) if uri == "index.md" else text)
    for path in sorted(RESULTS.rglob("*.png")):
        add(str(path.relative_to(ROOT)), path.read_bytes())
    add("commands/index.md", _command_index())
    for name, command in _commands():
        add(_command_page(name), _command_text(name, command))
    add("errors.md", _errors())
    for path in _notebooks():
        for uri, content in _notebook(path):
            add(uri, content)
    return files


def on_page_markdown(markdown: str, page: Page, files: Files, **_: Any) -> str:
    """Turn links to files outside docs/ into links to their pages, or into words."""
    uri = page.file.src_uri
    home = {made: name for name, made in ROOT_PAGES.items()}.get(uri, f"docs/{uri}")

    def link(found: re.Match[str]) -> str:
        target = os.path.normpath(Path(home).parent / found[1])
        target = ROOT_PAGES.get(target, target.removeprefix("docs/"))
        there = files.get_file_from_path(target) is not None
        if not there and (ROOT / "docs" / target).suffix == ".md":
            there = not (ROOT / target).exists()  # a broken link, for MkDocs to report
        if not there:
            return f"]({_NO_PAGE})"
        return f"]({os.path.relpath(target, Path(uri).parent)}{found[2] or ''})"

    # Code holds brackets that are no links.
    pieces = _outside_code(markdown)
    return "".join(
        text if is_code else _without_page(_LINK.sub(link, text)) for is_code, text in pieces
    )


def on_page_content(html: str, page: Page, files: Files, **_: Any) -> str:
    """Link the pages that words name as docs/NAME.md, and say their titles in place of file names.

    In types, mend the hyphens of literals.
    """

    def target(name: str) -> File:
        found = files.get_file_from_path(f"{name.lower()}.md")
        if found is None or found.page is None:
            raise PluginError(f"{page.file.src_uri}: there is no docs/{name}.md")
        return found

    def title(found: re.Match[str]) -> str:
        return f"{found[1]}{target(found[2]).page.title}</a>"

    def link(found: re.Match[str]) -> str:
        file = target(found[1])
        return f'<a href="{file.url_relative_to(page.file)}">{file.page.title}</a>'

    html = re.sub(r'<img [^>]*src="([^"]*/([\w-]+))\.svg"[^>]*>', _narrow, html)
    html = re.sub(r'(<a href="[^"]*">)(?:docs/)?([\w-]+)\.md</a>', title, html)
    pieces = _NOT_WORDS.split(html)
    pieces[::2] = [re.sub(r"(?<![\w/])docs/([\w-]+)\.md", link, words) for words in pieces[::2]]
    html = "".join(pieces)
    if page.file.src_uri.startswith("api/"):
        html = re.sub(r"<code>.*?</code>", lambda code: code[0].replace(" - ", "-"), html)
    return html


def _front(readme: str) -> str:
    """Return the front page: the README, with version, links and a card for each kind of user."""
    title, first, rest = readme.split("\n\n", 2)
    cards = FRONT.read_text(encoding="utf-8").replace("{version}", __version__)
    return f"{_ALONE}{title}\n\n{first}\n\n{cards}\n{rest}"


def _narrow(found: re.Match[str]) -> str:
    """Offer the picture that is drawn for a phone, where there is one, beside the wide one."""
    if not (IMAGES / f"{found[2]}-narrow.svg").exists():
        return found[0]
    source = f'<source media="(max-width: 40em)" srcset="{found[1]}-narrow.svg">'
    return f"<picture>{source}{found[0]}</picture>"


_NO_PAGE = "no-page"


def _without_page(text: str) -> str:
    return re.sub(rf"\[([^\]]*)\]\({_NO_PAGE}\)", r"`\1`", text)


def _outside_code(markdown: str) -> Iterator[tuple[bool, str]]:
    """Yield pieces of a page, and whether each is a block of code."""
    last = 0
    for found in _FENCE.finditer(markdown):
        yield False, markdown[last : found.start()]
        yield True, found[0]
        last = found.end()
    yield False, markdown[last:]


def on_post_build(config: MkDocsConfig) -> None:
    """Refuse a site that would fetch anything from elsewhere, or that shows Python's own words."""
    fetched = re.compile(
        r"""<(?:script|img|iframe)[^>]*\ssrc=["']?(?:https?:)?//[^>]*>"""
        r"""|<link[^>]*rel=["']?(?:stylesheet|preconnect|icon)[^>]*href=["']?(?:https?:)?//[^>]*>"""
    )
    for path in Path(config.site_dir).rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        if found := fetched.search(text):
            raise PluginError(f"{path}: fetched from the network: {found[0][:200]}")
        if any(words in text for words in _OF_TYPES):
            raise PluginError(f"{path}: a default is documented by its type; name the members")


# ---- the command line


def _commands() -> Iterator[tuple[str, Any]]:
    """Yield every command with its full name, as ``data fetch``."""
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", None)
        if inner is None:
            yield name, command
        else:
            yield from ((f"{name} {one}", below) for one, below in inner.items())


def _command_page(name: str) -> str:
    return f"commands/{name.replace(' ', '-')}.md"


def _plain(markup: str) -> str:
    return " ".join(Text.from_markup(markup or "").plain.split())


def _cell(text: str) -> str:
    """Return text for a cell of a table: Markdown's characters are escaped, code stays code."""
    return re.sub(
        r"`[^`]+`|[|*_<\[\]`]",
        lambda part: "\\" + part[0] if len(part[0]) == 1 else part[0].replace("|", r"\|"),
        text,
    )


def _command_index() -> str:
    rows = [
        f"| [`dplasso {name}`]({Path(_command_page(name)).name}) | {_cell(_plain(command.help))} |"
        for name, command in _commands()
    ]
    return "\n".join(
        [
            "# Command line",
            "",
            "Made from the commands themselves, as `--help` prints them. Where there is `--json`,",
            "it prints for programs. Exit codes: 0 done, 1 an error, said in one sentence, 2 wrong",
            "usage, 3 an audit that refutes the claim, 130 interrupted.",
            "",
            *_stacking(["| command | what it does |", "| --- | --- |", *rows]),
        ]
    )


def _command_text(name: str, command: Any) -> str:
    shown = [one for one in command.params if not getattr(one, "hidden", False)]
    arguments = [one for one in shown if one.param_type_name == "argument"]
    usage = " ".join(_argument(one) for one in arguments)
    lines = [f"# dplasso {name}", "", *textwrap.dedent(command.help or "").splitlines(), ""]
    lines += ["```console", f"$ dplasso {name} [OPTIONS] {usage}".rstrip(), "```", ""]
    if arguments:
        rows = [f"| `{_argument(one)}` | {_cell(_plain(one.help))} |" for one in arguments]
        lines += _stacking(["| argument | meaning |", "| --- | --- |", *rows])
    panels: dict[str, list[Any]] = {}
    for one in shown:
        if one.param_type_name == "option" and one.name != "help":
            panels.setdefault(one.rich_help_panel or "Options", []).append(one)
    for panel, options in panels.items():
        head = ["| option | meaning | default |", "| --- | --- | --- |"]
        lines += [f"## {panel}", "", *_stacking([*head, *map(_option, options)])]
    examples, note = _epilog(command.epilog or "")
    if examples:
        lines += ["## Examples", "", "```console", *examples, "```", ""]
    if note:
        lines += [note, ""]
    return "\n".join(lines)


def _stacking(table: list[str]) -> list[str]:
    """Return a table whose cells stand below each other where the screen is narrow."""
    return ['<div class="stacking" markdown>', "", *table, "", "</div>", ""]


def _argument(one: Any) -> str:
    return one.metavar or one.name.upper()


def _option(one: Any) -> str:
    value = f" {one.metavar}" if one.metavar else ""
    names = ", ".join(f"`{name}{value}`" for name in [*one.opts, *one.secondary_opts])
    plain = one.default is not None and not callable(one.default) and one.show_default is not False
    default = f"`{one.default}`" if plain and not isinstance(one.default, bool) else ""
    if one.required:
        names += " (needed)"
    if isinstance(one.show_default, str):
        default = one.show_default
    return f"| {names} | {_cell(_plain(one.help))} | {default} |"


def _epilog(markup: str) -> tuple[list[str], str]:
    """Return the example commands of an epilog, and what is said after them."""
    paragraphs = [_plain(one) for one in markup.split("\n\n")]
    examples = [one for one in paragraphs if one.startswith("$ ")]
    note = [one for one in paragraphs if one and one != "Examples" and one not in examples]
    return examples, "\n\n".join(note)


# ---- error messages


def _errors() -> str:
    """Return every message that is raised or warned of, by its kind."""
    lines = [
        "# Error messages",
        "",
        "The messages of the package, read off its source, by what is wrong. `{...}` stands for "
        "a value of yours. Each message says what is wrong, where, and what to do. On the command "
        "line it is printed after `error:`, and the exit code is 1. In Python it is the text of "
        "the exception. Messages that are put together from parts are not listed.",
        "",
    ]
    for kind, texts in messages().items():
        lines += [f"## {KINDS[kind]}", "", f"`{kind}`", ""]
        lines += [f"- {_cell(one)}" for one in texts]
        lines.append("")
    return "\n".join(lines)


# ---- notebooks


def _notebooks() -> list[Path]:
    return sorted(GALLERY.glob("*.ipynb"))


def _cells(path: Path) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return cells


def _title(cells: list[dict[str, Any]]) -> str:
    return "".join(cells[0]["source"]).splitlines()[0].removeprefix("# ")


def _notebook(path: Path) -> Iterator[tuple[str, str | bytes]]:
    """Yield the page of a notebook and its pictures."""
    lines: list[str] = []
    pictures = 0
    for cell in _cells(path):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            lines += [source, ""]
            continue
        lines += ["```python", source, "```", ""]
        for output in _joined(cell["outputs"]):
            data = output.get("data", {})
            if "image/png" in data:
                pictures += 1
                picture = f"{path.stem}-{pictures}.png"
                yield f"gallery/{picture}", base64.b64decode("".join(data["image/png"]))
                lines += [f"![Output of the cell above]({picture})", ""]
            elif "text/html" in data:
                html = _one_block("".join(data["text/html"]))
                lines += ['<div class="output"><div class="html">', html, "</div></div>", ""]
            else:
                text = "".join(output.get("text") or data["text/plain"]).rstrip()
                lines += ['<div class="output" markdown>', "", "```text", text, "```", ""]
                lines += ["</div>", ""]
    yield f"gallery/{path.stem}.md", "\n".join(lines)


def _joined(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a cell's outputs, what it printed piece by piece as one."""
    joined: list[dict[str, Any]] = []
    for output in outputs:
        if joined and output["output_type"] == joined[-1]["output_type"] == "stream":
            joined[-1] = {**output, "text": [*joined[-1]["text"], *output["text"]]}
        else:
            joined.append(output)
    return joined


def _one_block(html: str) -> str:
    """Return HTML without empty lines, at which Markdown would end the block."""
    return "\n".join(line for line in html.splitlines() if line.strip())

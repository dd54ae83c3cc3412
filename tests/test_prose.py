"""The check of wording finds what the rules rule out, and nothing else."""

import re

import pytest
from tools import prose
from tools.messages import messages

LONG = "A sentence of " + "many " * 33 + "words."
EXAMPLE = "# A page\n\n```python\nfit(X, y)\n```\n\n"


def found(text, name="docs/page.md"):
    return [what for _, what in prose.findings(name, EXAMPLE + text)]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (LONG, "37 words"),
        (f"- an item\n- {LONG}", "37 words"),
        ("One is here. " * 7, "7 sentences in one paragraph"),
        ("A cell is\nas good as new.", "'as good as': write almost"),
        ("## What is told", "'is told'"),
        ("It gains .003 AUC.", ".003: write 0.003"),
    ],
)
def test_what_is_ruled_out_is_found(text, what):
    (only,) = found(text)
    assert only.startswith(what)


@pytest.mark.parametrize(
    "text",
    [
        LONG.replace("words.", "`one` ` two `."),
        f"```text\n{LONG}\n```",
        f"    {LONG}",
        "- One. Two. Three. Four.\n- One. Two. Three. Four.",
        "One. Two. Three. Four.\n\nOne. Two. Three. Four.",
        "Call `model.as_told()` (`hardly` is a name). Version 0.3.1 of a.b is read in src/.5.",
        "| a | .003 |",
        f"| a | b |\n|---|---|\n| x | {LONG} |",
        "It is so (Raff et al. 2023, Sec. 4). " * 6,
    ],
)
def test_what_is_allowed_is_not(text):
    text = text.replace("many " * 33, "many " * 30) if text.startswith("A sentence") else text
    assert not found(text)


def test_a_page_begins_with_an_example_and_lines_are_those_of_the_page(
    tmp_path, capsys, monkeypatch
):
    late = "# A page\n\n" + "Words.\n\n" * prose.FIRST_LINES + "```python\nfit(X, y)\n```\n"
    assert list(prose.findings("docs/page.md", late)) == [(1, "no example in the first 40 lines")]
    assert not list(prose.findings("docs/glossary.md", late))
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(f"{EXAMPLE}Fine.\n\n{LONG}\n")
    assert prose.main([str(page)]) == 1
    assert capsys.readouterr().out.startswith("page.md:9: 37 words")
    page.write_text(EXAMPLE)
    assert prose.main([str(page)]) == 0


def test_messages_are_worded_as_pages_are():
    said = {text for texts in messages().values() for text in texts}
    assert len(said) > 400
    assert any("; pass one of them" in text for text in said)
    wrong = {text: list(prose.wording(re.sub(r"\{[^}]*\}", "X", text))) for text in said}
    assert not {text: found for text, found in wrong.items() if found}

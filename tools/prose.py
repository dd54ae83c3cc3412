"""Check the wording of README, CHANGELOG and docs: ``python tools/prose.py [PAGE ...]``.

Prints each finding as ``page:line: what``, and exits with 1 if there are any. It finds long
sentences and paragraphs, words that readers do not know, and pages without an example near the top.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
MOST_WORDS = 35
MOST_SENTENCES = 6
# An example stands within so many lines of the top of a page.
FIRST_LINES = 40
# Terms are defined on the first page, and the others list what the source holds.
WITHOUT_EXAMPLE = ("docs/glossary.md", "docs/api/", "CHANGELOG.md")

# What is ruled out, and what to write instead.
RULED_OUT = {
    r"as good as": "almost",
    r"all the same": "nevertheless",
    r"by (?:itself|themselves)": "automatically, alone",
    r"next to (?:nothing|no\b|none)": "almost nothing",
    r"for ever": "for the lifetime of ...",
    r"hardly": "rarely, almost never",
    r"(?:is|are|was|were) worth": "the number with its meaning",
    r"of now": "current",
    r"loud(?:ly|ness|er)?": "large, prior scale",
    r"doors?": "the name of the function",
    r"pull(?:s|ed|ing)? (?:with|at|on|of|by|in)|the pull|a pull": "contributes, contribution",
    r"(?:was|were|is|are|been|be|being|what|as) told": "specified, reported, passed",
    r"the given|what (?:is|was) given|as given|nothing given": "the name of what was passed",
    r"(?:a|two|public|of the|its own) starts?\b(?! of)|starts of": "warm start, prior",
    r"(?:is|are|was|were) no (?:number|store|model|table|date|text)s?": "is not a ...",
    r"come(?:s)? about": "is computed",
}
_WORDS = {re.compile(rf"\b(?:{words})\b", re.IGNORECASE): cure for words, cure in RULED_OUT.items()}
_BARE_FRACTION = re.compile(r"(?<![\w.\]/])\.\d+\b")
_FENCE = re.compile(r"^\s*(```|~~~)")
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+\.)\s+")
_ABBREVIATION = re.compile(r"\b(?:et al|e\.g|i\.e|cf|vs|approx|no|Fig|Eq|Sec)\.$")
_SENTENCE = re.compile(r"[.!?][\"')*_]*\s+(?=[\"'(*_`\[]*[A-Z0-9`\[])")


def blocks(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the blocks of a page: the number of the first line, the kind and the text.

    Kinds are ``code``, ``picture``, ``head``, ``cell`` and ``prose``.
    """
    kind, first, held = "", 0, list[str]()
    fenced = in_item = False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        here = _kind_of(line, fenced, held and kind == "prose", in_item)
        if _FENCE.match(line):
            fenced = not fenced
        if held and (here != kind or kind == "head" or _ITEM.match(line)):
            yield first, kind, " ".join(held)
            held = []
        if here == "cell":
            for cell in line.strip().strip("|").split(" | "):
                yield number, "cell", cell.strip()
        elif here:
            if not held:
                kind, first = here, number
            held.append(_ITEM.sub("", line).strip(" >"))
        if here in ("head", "prose"):
            in_item = bool(_ITEM.match(line)) or (in_item and here == "prose" and line[:1] == " ")


def _kind_of(line: str, fenced: bool, goes_on: object, in_item: bool) -> str:
    if fenced or _FENCE.match(line):
        return "code"
    if not line.strip():
        return ""
    if line.startswith("    ") and not goes_on and not in_item:
        return "code"
    if line.lstrip().startswith("|"):
        return "" if set(line) <= set("|-: ") else "cell"
    if line.startswith("#"):
        return "head"
    if line.lstrip().startswith("!["):
        return "picture"
    return "" if line.lstrip().startswith(("<", ":::", "---")) else "prose"


def plain(text: str) -> str:
    """Return text as it is read: links by their words, a code span as one word."""
    text = re.sub(r"`+[^`]*`+", "`x`", text)
    text = re.sub(r"!?\[([^\]]*)\](?:\([^)]*\))?", r"\1", text)
    return re.sub(r"<[^>]*>|[*_]{1,2}(?=\w)|(?<=\w)[*_]{1,2}", "", text)


def sentences(text: str) -> list[str]:
    """Return the sentences of a plain text."""
    found, begin = [], 0
    for end in _SENTENCE.finditer(text):
        if not _ABBREVIATION.search(text[begin : end.start() + 1]):
            found.append(text[begin : end.end()].strip())
            begin = end.end()
    return [one for one in [*found, text[begin:].strip()] if one]


def length(sentence: str) -> int:
    """Return the number of words; signs and operators between words do not count."""
    return sum(any(sign.isalnum() for sign in word) for word in sentence.split())


def wording(text: str, *, cell: bool = False) -> Iterator[str]:
    """Yield what is wrong with the words of a paragraph, a cell of a table or a message."""
    read = plain(text)
    # A cell may be a list of fragments.
    for one in () if cell else sentences(read):
        if length(one) > MOST_WORDS:
            yield f"{length(one)} words in one sentence: {one[:60]}..."
    for words, cure in _WORDS.items():
        if found := words.search(read):
            yield f"'{found[0]}': write {cure}"
    if not cell and (bare := _BARE_FRACTION.search(read)):
        yield f"{bare[0]}: write 0{bare[0]}"


def findings(name: str, text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each finding on a page."""
    example = name.startswith(WITHOUT_EXAMPLE)
    for line, kind, block in blocks(text):
        example |= kind in ("code", "picture") and line <= FIRST_LINES
        if kind == "prose" and (many := len(sentences(plain(block)))) > MOST_SENTENCES:
            yield line, f"{many} sentences in one paragraph"
        if kind in ("prose", "cell", "head"):
            yield from ((line, one) for one in wording(block, cell=kind == "cell"))
    if not example:
        yield 1, f"no example in the first {FIRST_LINES} lines"


def pages() -> list[Path]:
    """Return what is checked."""
    return [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def main(names: list[str]) -> int:
    """Print the findings on some pages, or on all; return 1 if there are any."""
    counts: Counter[str] = Counter()
    for page in [Path(name).resolve() for name in names] or pages():
        name = str(page.relative_to(ROOT))
        for line, what in findings(name, page.read_text(encoding="utf-8")):
            print(f"{name}:{line}: {what}")
            counts[name] += 1
    print(f"{counts.total()} findings on {len(counts)} pages", file=sys.stderr)
    return int(counts.total() > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

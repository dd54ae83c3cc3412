"""The README's Python example runs as printed and keeps its word."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


def test_the_python_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(compile(example, str(README), "exec"), names)

    assert names["classifier"].privacy_.is_private
    assert names["classifier"].n_features_in_ == 2**20
    held_out = names["texts"][4_000:], names["labels"][4_000:]
    # Six telling words, each in a sixth of the rows: guessing would reach 0.5.
    assert names["model"].score(*held_out) > 0.8
    again = names["same"].decision_function(names["model"][0].transform(held_out[0]))
    assert (again == names["model"].decision_function(held_out[0])).all()


def test_the_documents_it_links_to_exist() -> None:
    links = re.findall(r"\]\(((?!https?:)[^)#]+)\)", README.read_text(encoding="utf-8"))
    assert links
    for link in links:
        assert (README.parent / link).is_file(), link

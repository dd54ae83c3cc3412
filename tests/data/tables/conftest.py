"""Text tables, written in the encoding that a test asks for."""

import pytest


@pytest.fixture
def written(tmp_path):
    def write(text, name="t.csv", encoding="utf-8"):
        path = tmp_path / name
        path.write_bytes(text.encode(encoding))
        return path

    return write

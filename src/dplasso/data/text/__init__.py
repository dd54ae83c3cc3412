"""Texts as row blocks: n-grams hashed to a declared number of columns."""

from dplasso.data.text.reader import TextHashing, text_source

__all__ = ["TextHashing", "text_source"]

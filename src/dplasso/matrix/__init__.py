"""Compressed matrices: layout, transpose, column numbers, margins."""

"""Reproduction of arXiv 2310.19978 table by table; docs/paper.md is the guide.

Every item (`table1` to `table4`, `figure1` to `figure4`) is a list of *cells*, each one measurement
on one data set kept as a small JSON file, and a function that presents the cells as a table with a
picture. Items run the paper's own way (``mechanism="paper"``, stale Algorithm 2) beside the
corrected one. They show numbers that depend on the data: for public data sets only.
"""

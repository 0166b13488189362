"""Graphs of any size with known structure."""

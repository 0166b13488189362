"""Exact training: every entity is scored for every question."""

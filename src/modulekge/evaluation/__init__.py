"""Filtered ranking, its metrics, and reports that state their protocol."""

"""Sections 4.2-4.5 of the paper: algebras, groups and their actions, norms, scores."""

"""The command line: parse, call one function, print."""

# In the order in which the help lists their commands
from modulekge.cli import data, models, runs, ask, improve, why, serve, kept, studies, doctor  # noqa: F401  # isort: skip
from modulekge.cli.app import app, main

__all__ = ["app", "main"]

"""The command line: parse, call one function, print."""

# In the order in which the help lists their commands
from modulekge.cli import data, synth, models, runs, ask, why, serve, add, export, kept, tune, studies  # isort: skip
from modulekge.cli.app import app, main

__all__ = [
    "add",
    "app",
    "ask",
    "data",
    "export",
    "kept",
    "main",
    "models",
    "runs",
    "serve",
    "studies",
    "synth",
    "tune",
    "why",
]

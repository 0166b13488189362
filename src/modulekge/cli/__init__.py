"""The command line: parse, call one function, print."""

from modulekge.cli import ask, data, export, kept, models, runs, studies, tune
from modulekge.cli.app import app, main

__all__ = ["app", "ask", "data", "export", "kept", "main", "models", "runs", "studies", "tune"]

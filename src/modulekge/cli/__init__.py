"""The command line: parse, call one function, print."""

from modulekge.cli import data, export, kept, models, runs, studies, tune
from modulekge.cli.app import app, main

__all__ = ["app", "data", "export", "kept", "main", "models", "runs", "studies", "tune"]

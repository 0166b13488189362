"""The command line: parse, call one function, print."""

from modulekge.cli import add, data, kept, models, runs, studies, tune
from modulekge.cli.app import app, main

__all__ = ["add", "app", "data", "kept", "main", "models", "runs", "studies", "tune"]

"""The command line: parse, call one function, print."""

from modulekge.cli import data, kept, models, runs, studies, tune, why
from modulekge.cli.app import app, main

__all__ = ["app", "data", "kept", "main", "models", "runs", "studies", "tune", "why"]

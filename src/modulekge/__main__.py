"""``python -m modulekge``."""

from modulekge.cli import main

main()

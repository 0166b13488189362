"""``python -m modulekge``."""

from modulekge_program import main

main()

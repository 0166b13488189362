"""The entry point of the program ``modulekge``."""

from modulekge import interrupts

interrupts.end_at_once()

from modulekge import cli  # noqa: E402


def main() -> None:
    """Run a command; once it is done, there is nothing to put in order."""
    try:
        cli.main()
    finally:
        interrupts.end_at_once()

"""The paper's experiments as data: run what is missing, then tables and figures with verdicts."""

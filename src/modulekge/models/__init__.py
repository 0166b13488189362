"""Models as rows of Table 1, and the one module that any row becomes."""

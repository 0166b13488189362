"""Questions by name, ranked answers with probabilities, and new links of a whole graph."""

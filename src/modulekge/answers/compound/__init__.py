"""Compound questions: links joined by and, or, not, answered exactly, with probabilities and witnesses."""

"""Answers from a trained model."""

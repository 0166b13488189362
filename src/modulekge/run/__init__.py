"""A run: a folder that holds everything about one training, and the training that fills it."""

"""A run for other tools: arrays, tables, RDF, an index, a folder to share."""

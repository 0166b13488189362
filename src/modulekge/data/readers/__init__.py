"""From files to tables of names: text, JSON lines, Parquet, RDF, and the folders of other tools."""

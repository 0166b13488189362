"""From files to tables of names: text, JSON lines, Parquet, RDF, and the folders of other tools."""

import pyarrow

pyarrow.enable_signal_handlers(False)  # Arrow's own, while it reads a table, now and then loses a Ctrl-C

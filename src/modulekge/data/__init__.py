"""From files to ids: reading, vocabularies, splits, known answers, batches, benchmark names."""

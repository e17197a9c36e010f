"""Source: what a text is, however broken, read within a time: documents, languages, tokens, brackets, trees, names."""

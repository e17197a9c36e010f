"""The product: a document and a gap in, an edit or the reason for none out. Knows no socket and no tensor."""

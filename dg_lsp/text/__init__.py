"""Text in, text out: documents, gaps, prompts, edits. Knows tree-sitter; knows no network, editor or clock."""

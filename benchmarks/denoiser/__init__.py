"""Canvas rows with low-rank adapters after a causal network that stays frozen: their training and their drafts."""

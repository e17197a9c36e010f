"""Loading: from a name to a network, a tokenizer, a schedule."""

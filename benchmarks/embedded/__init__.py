"""The recipe of the embedded checkpoint: corpus, tokenizer, and runs from scratch."""

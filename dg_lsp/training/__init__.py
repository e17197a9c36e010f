"""Training: the recipe, averaging, the corpus."""

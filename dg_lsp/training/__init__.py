"""Training: the corpus, the recipe, adaptation to a repository, averages of checkpoints."""

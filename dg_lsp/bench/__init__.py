"""Benchmarks that users may run on their own code: holes in real files, filled and scored."""

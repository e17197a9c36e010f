"""The engine beside other implementations of the same model."""

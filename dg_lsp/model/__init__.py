"""The model: everything that touches tensors. Knows no editor, no protocol, no event loop."""

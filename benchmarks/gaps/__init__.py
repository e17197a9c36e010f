"""`dg-lsp bench --gaps`: are gaps chosen right in broken files, and do fills fit? Measured on real sources.

Valid files are damaged as typing damages them; what is right is read off the valid file, by other code than the gaps'.
"""

"""Are gaps right in broken files? Measured at places of real sources, damaged as typing damages them.

What is right is read off the valid file, by other code than that of the gaps.
"""

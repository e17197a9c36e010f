"""Code that no training has seen: which packages it comes from, how to fetch them, and lists of holes in it."""

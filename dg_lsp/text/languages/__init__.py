"""Languages: data from grammars/ as objects."""

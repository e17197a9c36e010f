"""Does the guard hold in real packages, by the word of compilers: `python -m benchmarks.foreign --help`.

Of files that their own compiler accepts a text is cut out, and the truth and fourteen harmful texts are put in by the
product's own way. Needed are folders with sources of each language, and of the judges gcc, g++, javac, Go, rustc,
node, Ruby, PHP, luac, mcs, bash, swift and the npm and PyPI packages that `judges.py` names: a language whose judge is
missing is left out, with a word.
"""

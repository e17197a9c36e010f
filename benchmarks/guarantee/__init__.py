"""Does an edit ever harm a file: random places, texts that harm where they can, and a judge of its own.

`python -m benchmarks.guarantee --help`. The judge shares no code with the guard nor with how gaps are found.
"""

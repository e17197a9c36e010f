"""Run the measurement: `python -m benchmarks.guarantee --help`."""

from benchmarks.guarantee.run import main

if __name__ == "__main__":
    raise SystemExit(main())

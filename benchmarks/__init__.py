"""Benchmarks against ``model.predict`` and other packages: ``python -m benchmarks --help``."""

"""Sweeps too long for every run: all 2**32 fp32 inputs of two casts, ten million inputs of every other one.

Run with ``python -m tests.exhaustive``; ``--help`` lists the parts.
"""

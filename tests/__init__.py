"""The test suite of narrowcast."""

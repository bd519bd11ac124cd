"""Slow, obvious twins of the fast paths: what the tests hold them against."""

"""Experiments that settle a question about a network instead of guessing; each leaves it as it was."""

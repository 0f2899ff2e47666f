"""Text to a checked plan: nothing in this folder imports torch."""

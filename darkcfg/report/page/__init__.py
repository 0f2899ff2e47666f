"""The report of a run: one HTML file that holds everything it shows, and asks no network for anything.

Small pure functions make one block each; whatever comes from outside passes through `report.markup`, which escapes it.
"""

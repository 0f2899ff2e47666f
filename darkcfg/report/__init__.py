"""What people and programs see of a run: sees events, plans and results, never the loop."""

"""How fast a cfg trains here, and what binds it: measured on random images, through the real training step."""

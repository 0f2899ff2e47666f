"""Images and labels: finding, reading and augmenting them."""

"""What can be wrong with a data set before any network has seen it: each check measures, and says what it found."""

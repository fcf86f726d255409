"""The demonstration: a target that fails on demand, sample contracts, and the story they tell."""

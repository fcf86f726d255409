"""The broker launcher: each kind's life, and what goes wrong around it."""

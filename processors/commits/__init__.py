"""The commits stage: a frozen plan becomes a receipt, or a record of exactly what is not there."""

"""Formats by family: the list of each."""

"""Xids and SXids: what each number means, how its details are decoded, and which of many is the cause."""

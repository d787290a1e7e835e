"""Manifests of other schedulers and owners on a real API server: what they are, and what must come of them."""

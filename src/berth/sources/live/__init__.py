"""A cluster that changes: objects as they come and go, and the snapshot of any moment."""

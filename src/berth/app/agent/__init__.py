"""The node agent as a server: its configuration, its loop, its endpoints."""

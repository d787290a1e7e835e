"""The scheduler as a server: wiring between sources, the decision core and actions."""

"""The only writers to a cluster. Every write carries a precondition and may be refused."""

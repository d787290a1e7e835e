"""Berth: the GPU scheduler and ledger for Kubernetes."""

__version__ = "0.1.0"

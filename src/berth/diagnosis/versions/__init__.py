"""Which versions go together, as facts with their sources: one file a topic, and tables of all of them (tables.py).

A row is here only where its source says so and no other contradicts it; what is not here is not known. Virtual GPUs,
Windows and accelerators of other makers are out of scope.
"""

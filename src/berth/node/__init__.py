"""The node agent: what one machine shows of its GPUs, judged, and written to the objects of its own node."""

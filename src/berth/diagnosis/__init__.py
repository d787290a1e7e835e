"""Facts → findings: what is broken, at which layer, how we know, and what to do."""

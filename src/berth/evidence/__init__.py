"""Text → facts: what tools, logs and objects say, and no judgement of it."""

"""Proof: what shows that an upper bound is right, as numbers that anyone can check; see docs/certificate-format.md."""

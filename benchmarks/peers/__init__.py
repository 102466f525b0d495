"""Other methods, implemented from their published description: what the benchmarks compare this package with."""

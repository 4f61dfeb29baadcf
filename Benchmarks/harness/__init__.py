"""What `Benchmarks/bench` is made of, one concept per module."""

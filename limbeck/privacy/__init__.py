"""What makes the promise: sampling, clipping, noise, accounting. Knows nothing of methods."""

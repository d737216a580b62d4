"""What numbers say: statistics of tensors, explanations of single values."""

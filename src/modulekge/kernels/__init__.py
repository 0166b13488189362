"""Fast forms of what plain PyTorch says elsewhere: compiled loops, and kernels in Triton."""

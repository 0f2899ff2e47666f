"""The fused training step: a 16-bit working copy of the network, around whose convolutions our own kernels do the rest.

Imported only where a run uses it, for it needs Triton.
"""

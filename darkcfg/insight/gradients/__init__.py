"""Whether gradients are right.

result   what a check found, as plain data
check    every layer's backward pass against finite differences
kernels  the fused training step's gradients against the plain one's
"""

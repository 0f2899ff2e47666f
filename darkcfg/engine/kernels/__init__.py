"""Triton kernels of the training step, each beside the function that launches it; the plain modules are their oracle.

Imported only where a run uses them. With TRITON_INTERPRET=1 in the environment they run on CPU tensors.
"""

"""What a network does inside, and why.

twin        a network as it is looked at: nothing left to chance
compare/    which of several recipes is better, by the scatter over seeds
dumps/      every tensor of a step in a file; where two such files part, and which known mistake explains it
gradients/  every layer's backward pass against finite differences; the fused step's against the plain one's
"""

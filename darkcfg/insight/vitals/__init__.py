"""How each layer is on one batch of real images: what `darkcfg diagnose` judges and `darkcfg report` draws.

result   what was read, as plain data: all that `report/` and the rules of findings/ see
measure  one pass forward and backward, reduced at once
reading  the tensors of one layer as numbers
pace     the highest rate of the run, and its length
update   by how much the cfg's rate would move the weights
"""

"""How each layer is on one batch of real images: what `darkcfg report` draws of a network's inside.

`measure.py` looks, with torch; `result.py` is what `report/` sees.
"""

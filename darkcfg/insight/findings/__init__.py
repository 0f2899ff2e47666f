"""What is wrong with a network, from what was seen of it: pure functions, one file for each kind of thing.

subject    a network with everything that was measured
recipe     what the cfg alone shows
numbers    values that are no numbers
outputs    layers and channels that give nothing
norms      batch norms
depth      gradients and outputs from the first layer to the last
residual   blocks, and gradients that are no derivatives
answers    what the network says of the images
look       all of these rules
rank       causes before what follows from them
diagnosis  what comes of it
"""

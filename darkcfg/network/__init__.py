"""From a plan to torch modules: one file for each kind of section, the network they form, and its weights files.

    base, initialise, activations, batchnorm       what sections share
    blur, convolutional, connected,
    deconvolutional, local, pooling, shortcut,
    route, product, crop, resample, cost,
    normalise, pointwise, implicit                 one file for each kind of section
    registry                                       which module is built for which section
    graph                                          the layers of a plan and the walk through them
    assembly                                       `build` and `Network`
    groups                                         how each parameter is trained
    weights, darknet_file, safetensors_file        weights in files

Each file uses only those above it.
"""

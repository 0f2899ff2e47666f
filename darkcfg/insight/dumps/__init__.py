"""Every tensor of a step in a file, and where two such files part.

    arrays      images and truth from .npy files, checked
    dumpfile    the format of a dump: arrays by name in an .npz
    dump        one forward and backward pass of a network as a dump
    replay      single layers computed again, alone, from given arrays
    closeness   how far two arrays are apart
    storage     known ways in which one array is another, stored or scaled differently
    suspects    known mistakes of a layer's own arithmetic
    difference  what a comparison found, as plain data
    diff        two dumps compared

Each file uses only those above it.
"""

"""The training and evaluation of a network; knows no terminal and no picture."""

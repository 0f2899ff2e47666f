"""The table of docs/diagnose.md: every finding, what is normal, and where its threshold comes from, as the program has it."""  # noqa: INP001

from __future__ import annotations

from darkcfg.insight.datachecks import balance, channels, duplicates, labels
from darkcfg.insight.experiments import blocks, firstloss, modes, normalisation, onebatch, recomputed
from darkcfg.insight.findings import answers, depth, norms, outputs, recipe, residual
from darkcfg.insight.findings.rank import ORDER
from docs.blocks import table

ROWS: dict[str, tuple[str, str]] = {
    "broken-image": ("no NaN, no infinity behind `mean` and `std`", "one of them is in every output"),
    "constant-channels": ("channels that differ from pixel to pixel", "exact"),
    "labels-shifted": (
        "labels that fit their own images best",
        f"a quick classifier is right more often with the neighbours' labels, by {labels.SURE:g} standard deviations of chance",
    ),
    "test-labels-renumbered": (
        "no numbering of the test classes fits better than theirs",
        f"a quick classifier gains {labels.RENUMBERED_GAIN:.0%} of its accuracy or more",
    ),
    "softmax-twice": ("one `[softmax]`, on scores without bounds", "read from the cfg"),
    "frozen-at-random": ("frozen layers come with weights, are whitening or `init=dirac`", "read from the cfg"),
    "wrong-gradient": (
        "within 1e-4 of the difference, in float64",
        "rounding makes 1e-7, wrong gradients 1e-2 and more",
    ),
    "learning-rate-zero": ("above 0 somewhere; 0 at the end is right", "the whole schedule"),
    "learning-rate-too-high": (
        f"{onebatch.IMAGES} images are learnt in {onebatch.UPDATES} updates at the cfg's highest rate",
        f"the loss does not fall below {onebatch.FALLEN:g} of where it began, and at a lower rate it does",
    ),
    "broken-weights": ("finite weights and statistics", "exact"),
    "negative-variance": ("a rolling variance of 0 or more", "exact"),
    "zero-batch-norm": ("scales of about 1; of 0 only where a residual branch begins at nothing", "exact"),
    "dead-layer": (
        "outputs that change from image to image",
        f"exactly none does, while the input changes by more than {outputs.FAINT:g} of its size",
    ),
    "overflow": ("finite outputs", "the first layer with a value that is not"),
    "saturated": (
        f"less than {outputs.MANY_BOUNDED:.0%} of the values within 0.001 of an end of the activation",
        f"the derivative there is below 0.002; an error from {outputs.ALL_BOUNDED:.0%} on",
    ),
    "dead-channels": (
        f"fewer than {outputs.MANY_STILL:.0%} of the channels give one value",
        "some always die behind a relu",
    ),
    "statistics-not-warmed-up": (
        "rolling mean and variance about those of a batch",
        f"both below {norms.COLD:g} of it, and alike within {norms.ALIKE:g}, in every batch norm: as on the way from 0",
    ),
    "input-normalisation": (
        f"no other preparation of the images is better; the first statistics within {norms.OTHER:g} deviation of the batch's",
        f"others gain {normalisation.WARNING:.0%} of the images, an error from {normalisation.ERROR:.0%}; or only it is off",
    ),
    "channels-reversed": (
        "RGB is better than BGR",
        f"as `input-normalisation`: {normalisation.WARNING:.0%} of the images",
    ),
    "batchnorm-statistics": (
        f"recomputing them gains less than {recomputed.WARNING:.0%} of the images, and a loss below {recomputed.WARNING_LOSS:g}",
        f"an error where accuracy is below {recomputed.ERROR:.0%} of what it is then; a note in the first 300 updates",
    ),
    "evaluation-mode-differs": (
        f"as accurate as training mode within {modes.FAR:.0%}",
        "the same images in both modes",
    ),
    "vanishing-gradient": (
        f"the first layer's gradient is more than {depth.VANISHED:g} of the last one's",
        "the networks of cfg/ have 0.5 to 10; norms of activations' gradients, since batch norm hides those of weights",
    ),
    "exploding-gradient": (f"less than {depth.EXPLODED:g} times", "as above"),
    "broken-gradient": ("finite gradients", "the last layer with one that is not"),
    "first-loss-high": (
        f"at most {firstloss.HIGH:g} ln K with initial weights",
        f"an error from {firstloss.ERROR:g} ln K on",
    ),
    "first-loss-low": (f"at least {firstloss.LOW:g} ln K", "guessing costs ln K"),
    "images-look-alike": ("scores that differ from image to image", f"by less than {firstloss.SAME:g} of their size"),
    "cannot-learn-one-batch": (
        f"{onebatch.IMAGES} images below {onebatch.LEARNT:g} ln K after {onebatch.UPDATES} updates",
        "at no rate that was tried",
    ),
    "weights-hardly-move": (
        f"some weights can move by {recipe.HARDLY:g} of their size in the run",
        "the first update at the highest rate, times all",
    ),
    "learning-rate-low": (
        "one batch is learnt at the cfg's rate",
        f"at a higher one it is; a warning where {onebatch.CAREFUL:g} times is not enough",
    ),
    "one-class": (f"less than {answers.ONE_CLASS:.0%} of the answers are one class", "after an epoch"),
    "at-chance": (
        "more accurate than always naming the largest class",
        f"by {answers.NEAR_CHANCE:g} standard deviations of chance, after an epoch",
    ),
    "idle-block": (f"a branch is {residual.NOTHING:.0%} or more of what is added up", "in a trained network"),
    "idle-branch": (f"the loss changes by more than {blocks.IDLE:.0%} without the branch", "in a trained network"),
    "harmful-branch": (f"no branch whose absence gains {blocks.HARMFUL:.0%} of the images", "in a trained network"),
    "overfitted": (f"training and test images within {modes.MEMORISED:.0%}", "both in evaluation mode"),
    "strong-augmentation": (
        f"training images as accurate as without augmentation within {modes.HIDDEN:.0%}",
        "both in training mode",
    ),
    "diverged": ("every value of the run is finite", "the first that is not, when the last updates are done again"),
    "bent-scores": ("`activation=linear` before `[softmax]`", "C's own cfgs have leaky there: it costs little"),
    "labels-unlike-images": ("a quick classifier is better than the largest class", "by chance it is not"),
    "class-without-images": ("training images of every class", "exact"),
    "class-without-test-images": ("test images of every class", "exact"),
    "unequal-classes": (
        f"less than {balance.NOTEWORTHY:g} times as many images in one as in another",
        f"a warning from {balance.UNEQUAL:g} times on",
    ),
    "flat-images": ("no image of a single colour", f"a warning from {channels.MANY:.0%} on"),
    "grey-images": ("channels that differ", "exact"),
    "test-images-in-train": ("no test image among the training images", f"an error from {duplicates.MANY:.0%} on"),
    "same-image-two-labels": ("one label an image", f"a warning from {duplicates.MANY:.0%} on"),
    "duplicates-in-train": ("each image once", f"a warning from {10 * duplicates.MANY:.0%} on"),
    "near-duplicates": ("few", f"correlation of small copies above {duplicates.NEAR:g}; CIFAR has them"),
}
"""By code: what is normal, and what the threshold is or rests on."""


def findings_table() -> str:
    """Causes first, as they are ranked."""
    codes = [*ORDER, *(code for code in ROWS if code not in ORDER)]
    return table(("finding", "normal", "threshold"), ((f"`{code}`", *ROWS[code]) for code in codes))

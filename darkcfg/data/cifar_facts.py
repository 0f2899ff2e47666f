"""What the authors of CIFAR-10 and CIFAR-100 published: file names, sizes, md5 sums and class names.

The md5 sums of the binary archives are those of https://www.cs.toronto.edu/~kriz/cifar.html, those of the Python
version are the ones that torchvision checks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from darkcfg.data.archive import Archive

PIXELS = 3 * 32 * 32
SHAPE = (3, 32, 32)
NUM_TRAIN, NUM_TEST = 50_000, 10_000


@dataclass(frozen=True)
class Layout:
    """One published form of a data set: its folder, its archive, and its files."""

    folder: str
    archive: Archive
    train: tuple[str, ...]
    test: tuple[str, ...]
    md5: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """By file name; only of the pickled version, whose files must not be opened unverified."""

    @property
    def files(self) -> tuple[str, ...]:
        """Every file that holds images."""
        return (*self.train, *self.test)


@dataclass(frozen=True)
class LabelSet:
    """One way in which the images are labelled."""

    key: str
    """The name of the labels in the Python version."""
    names_file: str
    """The file of class names in the binary version."""
    names: tuple[str, ...]


@dataclass(frozen=True)
class Cifar:
    """A data set; `labels` in the order of the bytes in front of each binary record."""

    name: str
    binary: Layout
    python: Layout
    labels: tuple[LabelSet, ...]

    @property
    def record(self) -> int:
        """Bytes of one label-and-image record of the binary version."""
        return len(self.labels) + PIXELS


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


CIFAR10 = Cifar(
    name="cifar10",
    binary=Layout(
        folder="cifar-10-batches-bin",
        archive=Archive("cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530", 170_052_171),
        train=tuple(f"data_batch_{number}.bin" for number in range(1, 6)),
        test=("test_batch.bin",),
    ),
    python=Layout(
        folder="cifar-10-batches-py",
        archive=Archive("cifar-10-python.tar.gz", "c58f30108f718f92721af3b95e74349a", 170_498_071),
        train=tuple(f"data_batch_{number}" for number in range(1, 6)),
        test=("test_batch",),
        md5=MappingProxyType(
            {
                "data_batch_1": "c99cafc152244af753f735de768cd75f",
                "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
                "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
                "data_batch_4": "634d18415352ddfa80567beed471001a",
                "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
                "test_batch": "40351d587109b95175f43aff81a1287e",
            }
        ),
    ),
    labels=(
        LabelSet(
            key="labels",
            names_file="batches.meta.txt",
            names=_words("airplane automobile bird cat deer dog frog horse ship truck"),
        ),
    ),
)

COARSE = LabelSet(
    key="coarse_labels",
    names_file="coarse_label_names.txt",
    names=_words(
        """
        aquatic_mammals fish flowers food_containers fruit_and_vegetables household_electrical_devices
        household_furniture insects large_carnivores large_man-made_outdoor_things large_natural_outdoor_scenes
        large_omnivores_and_herbivores medium_mammals non-insect_invertebrates people reptiles small_mammals trees
        vehicles_1 vehicles_2
        """
    ),
)

FINE = LabelSet(
    key="fine_labels",
    names_file="fine_label_names.txt",
    names=_words(
        """
        apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can
        castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin
        elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard lobster
        man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck
        pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk
        skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank telephone television tiger
        tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm
        """
    ),
)

CIFAR100 = Cifar(
    name="cifar100",
    binary=Layout(
        folder="cifar-100-binary",
        archive=Archive("cifar-100-binary.tar.gz", "03b5dce01913d631647c71ecec9e9cb8", 168_513_733),
        train=("train.bin",),
        test=("test.bin",),
    ),
    python=Layout(
        folder="cifar-100-python",
        archive=Archive("cifar-100-python.tar.gz", "eb9058c3a382ffc7106e4002c42a8d85", 169_001_437),
        train=("train",),
        test=("test",),
        md5=MappingProxyType({"train": "16019d7e3df5f24257cddd939b257f8d", "test": "f0ef6b0ae62326f3e7ffdfab6717acfc"}),
    ),
    labels=(COARSE, FINE),
)

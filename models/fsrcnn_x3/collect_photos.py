#!/usr/bin/env python3
"""Assembles the training and held-out photographs from software packages: Debian 12's archive and two Python wheels.

    collect_photos.py --out DIR [--downloads DIR]

writes DIR/train and DIR/held_out. It needs Debian's apt-get and dpkg-deb, and Pillow, scikit-image and scikit-learn.
Every photograph is named below, one by one, so that the set is the same wherever this runs. None of them is kept in
this repository but the demo photo.

Wallpapers are several thousand pixels wide, and so close up they show the camera's noise and JPEG's blocks. They are
shrunk to at most 1600 pixels on the long side: then a pixel holds real detail, which is what the network is to learn.
"""
import argparse
import pathlib
import subprocess
import sys

from PIL import Image, ImageOps

Image.MAX_IMAGE_PIXELS = None
LONG_SIDE = 1600
JPEG_QUALITY = 95

# Debian package -> (folder inside the package, photographs in it).
DEBIAN_PHOTOS = {
    "lomiri-wallpapers-16.04": ("usr/share/backgrounds", """
        Bridge_by_Sander_Klootwijk.jpg Dragonfly_by_Bolly.jpg Picture_0B_by_freespace.jpg Picture_1A_by_freespace.jpg
        Wine_by_Jakkub_Mede.jpg aitzgorri_by_Aitzol_Berasategi.jpg friends_by_Aitzol_Berasategi.jpg
        greentock_by_Peter_Nerlich.jpg life_by_Aitzol_Berasategi.jpg picosdeeuropa_by_Aitzol_Berasategi.jpg
        seeding_by_Clements_Engelhardt.jpg sunset_by_Aitzol_Berasategi.jpg""".split()),
    "lomiri-wallpapers-20.04": ("usr/share/backgrounds", ["Kleiber_by_Lukas_Baubkus.jpg"]),
    "mate-backgrounds": ("usr/share/backgrounds/mate/nature", """
        Blinds.jpg Dune.jpg FreshFlower.jpg Garden.jpg GreenMeadow.jpg LadyBird.jpg RainDrops.jpg TwoWings.jpg Wood.jpg
        YellowFlower.jpg""".split()),
    "plasma-workspace-wallpapers": ("usr/share/wallpapers", [
        f"{name}/contents/images/2560x1600.jpg" for name in
        "BytheWater ColdRipple ColorfulCups EveningGlow FallenLeaf Grey Kite OneStandsOut Path".split()]),
    "tuxpaint-data": ("usr/share/tuxpaint/templates",
                      "burnt_bark.jpg cliff.jpg corn_maze.jpg rocks.jpg sheep.jpg".split()),
    "visp-images-data": ("usr/share/visp-images-data/ViSP-images/Solvay",
                         ["Solvay_conference_1927_Version2_2126x1463.jpg"]),
    "opencv-doc": ("usr/share/doc/opencv-doc/examples", """
        alphamat/input_images/plant.jpg data/aloeL.jpg data/baboon.jpg data/basketball1.png data/board.jpg
        data/box_in_scene.png data/building.jpg data/chicky_512.png data/ela_original.jpg data/fruits.jpg
        data/graf1.png data/leuvenA.jpg data/messi5.jpg data/rubberwhale1.png data/squirrel_cls.jpg
        data/starry_night.jpg data/sudoku.png hfs/data/000.jpg reg/home.png text/scenetext01.jpg text/scenetext02.jpg
        text/scenetext04.jpg text/scenetext05.jpg text/scenetext06.jpg text/scenetext_segmented_word01.jpg
        text/scenetext_segmented_word02.jpg text/scenetext_segmented_word03.jpg
        text/scenetext_segmented_word04.jpg""".split()),
}
SKIMAGE_TRAIN = "brick.png grass.png gravel.png coins.png ihc.png page.png text.png motorcycle_left.png".split()
SKLEARN_TRAIN = ["flower.jpg"]

# Never trained on; no other picture above shows the same scene. astronaut is the photo of the demo.
SKIMAGE_HELD_OUT = "astronaut.png coffee.png chelsea.png camera.png rocket.jpg".split()
SKLEARN_HELD_OUT = ["china.jpg"]
DEBIAN_HELD_OUT = {"opencv-doc": ("usr/share/doc/opencv-doc/examples", ["dnn_superres/butterfly.png"])}


def unpack(package: str, downloads: pathlib.Path) -> pathlib.Path:
    """Downloads a Debian package, once, and unpacks it without installing it."""
    root = downloads / package
    if not root.exists():
        subprocess.run(["apt-get", "download", package], cwd=downloads, check=True, stdout=subprocess.DEVNULL)
        archive = next(downloads.glob(f"{package}_*.deb"))
        subprocess.run(["dpkg-deb", "-x", archive, root], check=True)
        archive.unlink()
    return root


def sources(downloads: pathlib.Path):
    """Yields (part, package, file) for every photograph."""
    import skimage
    import sklearn
    for part, table in (("train", DEBIAN_PHOTOS), ("held_out", DEBIAN_HELD_OUT)):
        for package, (folder, names) in table.items():
            root = unpack(package, downloads)
            for name in names:
                yield part, package, root / folder / name
    skimage_folder = pathlib.Path(skimage.__file__).parent / "data"
    sklearn_folder = pathlib.Path(sklearn.__file__).parent / "datasets/images"
    wheels = (("scikit-image", skimage_folder, SKIMAGE_TRAIN, SKIMAGE_HELD_OUT),
              ("scikit-learn", sklearn_folder, SKLEARN_TRAIN, SKLEARN_HELD_OUT))
    for package, folder, train, held_out in wheels:
        for part, names in (("train", train), ("held_out", held_out)):
            for name in names:
                yield part, package, folder / name


def title(file: pathlib.Path) -> str:
    """A file's name, or its wallpaper's where the file is only called after its size."""
    return file.parents[2].name if file.stem == "2560x1600" else file.stem


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder that receives train/ and held_out/")
    parser.add_argument("--downloads", type=pathlib.Path, help="where packages are unpacked (default: OUT/downloads)")
    arguments = parser.parse_args()
    downloads = (arguments.downloads or arguments.out / "downloads").absolute()
    downloads.mkdir(parents=True, exist_ok=True)
    for part, package, file in sources(downloads):
        target = arguments.out / part / f"{package}__{title(file)}"
        target.parent.mkdir(parents=True, exist_ok=True)
        photo = ImageOps.exif_transpose(Image.open(file)).convert("RGB")
        if part == "train":
            photo.thumbnail((LONG_SIDE, LONG_SIDE), Image.Resampling.LANCZOS)
            photo.save(f"{target}.jpg", quality=JPEG_QUALITY, subsampling=0)
        else:
            photo.save(f"{target}.png")
        print(f"{part:8} {package:28} {title(file):44} {photo.width} x {photo.height}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

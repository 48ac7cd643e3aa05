"""Arrays, images and sounds in and out of the command line: their values, what is refused and how, and that no half file appears."""

from __future__ import annotations

import os
import wave

import numpy as np
import pytest
from PIL import Image

import small_models
from onnx import TensorProto, helper

RNG = np.random.default_rng(7)
PHOTO = RNG.integers(0, 256, (6, 8, 3), np.uint8)


@pytest.fixture(scope="module")
def up(tmp_path_factory):
    return small_models.up(tmp_path_factory.mktemp("models") / "up.onnx")


@pytest.fixture
def same(tmp_path):
    def make(channels="C", kind=TensorProto.FLOAT, shape=None):
        return small_models.same(tmp_path / f"same_{channels}_{kind}.onnx", channels, kind, shape)
    return make


@pytest.fixture
def photo(tmp_path):
    Image.fromarray(PHOTO).save(tmp_path / "photo.png")
    return tmp_path / "photo.png"


def as_array(polyphase, model, path, folder, *flags) -> np.ndarray:
    polyphase("run", model, "--input", f"x={path}", "--output", f"y={folder}/seen.npy", *flags)
    return np.load(folder / "seen.npy")


# ---------------------------------------------------------------- arrays


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?"])
def test_every_dtype_goes_through_npz_and_npy(polyphase, same, tmp_path, dtype):
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    model = same("C", kind)
    array = RNG.integers(0, 2 if dtype == "?" else 100, (1, 2, 3, 4)).astype(dtype)
    found = polyphase.run_arrays(model, {"x": array}, tmp_path)["y"]
    assert found.dtype == array.dtype and np.array_equal(found, array)
    np.save(tmp_path / "in.npy", array.astype(array.dtype.newbyteorder(">"), order="F"))
    found = as_array(polyphase, model, tmp_path / "in.npy", tmp_path)
    assert found.dtype == array.dtype and np.array_equal(found, array)


def test_bfloat16_is_read_and_written_as_f32(polyphase, same, tmp_path):
    values = np.array([1, -2.5, 3.140625, 1e30], "f4").reshape(1, 1, 2, 2)
    found = polyphase.run_arrays(same("C", TensorProto.BFLOAT16), {"x": values + np.float32(1e-4) * values}, tmp_path)["y"]
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found[..., :2, :].ravel()[:3], values.ravel()[:3])


def test_compressed_and_positional_archives_are_read(polyphase, tmp_path):
    model = small_models.two(tmp_path / "two.onnx")
    a, b = RNG.standard_normal((2, 3, 4), np.float32)
    np.savez_compressed(tmp_path / "named.npz", b=b, a=a)
    np.savez(tmp_path / "positions.npz", a, b)
    for name in ("named.npz", "positions.npz"):
        polyphase("run", model, "--inputs", tmp_path / name, "--outputs", tmp_path / "out.npz")
        with np.load(tmp_path / "out.npz") as out:
            np.testing.assert_array_equal(out["sum"], a + b)
            np.testing.assert_array_equal(out["product"], a * b)
    np.save(tmp_path / "b.npy", b)
    np.savez(tmp_path / "a.npz", a=a)
    polyphase("run", model, "--inputs", tmp_path / "a.npz", "--input", f"b={tmp_path}/b.npy", "--output", f"product={tmp_path}/p.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "p.npy"), a * b)


def test_archives_are_the_same_bytes_every_time(polyphase, up, tmp_path):
    np.savez(tmp_path / "in.npz", x=np.ones((1, 3, 4, 5), "f4"))
    for name in ("a.npz", "b.npz"):
        polyphase("run", up, "--inputs", tmp_path / "in.npz", "--outputs", tmp_path / name)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


# ---------------------------------------------------------------- images and sounds


def test_images_become_what_numpy_says(polyphase, same, photo, tmp_path):
    plain = PHOTO.transpose(2, 0, 1)[None] / 255
    mean, std = np.array([0.485, 0.456, 0.406]).reshape(3, 1, 1), np.array([0.229, 0.224, 0.225]).reshape(3, 1, 1)
    grey = (plain * np.array([0.299, 0.587, 0.114]).reshape(3, 1, 1)).sum(1, keepdims=True)
    for channels, flags, expected in [
        ("C", [], plain),
        ("C", ["--range", "-1..1"], plain * 2 - 1),
        ("C", ["--range=0..255"], plain * 255),
        ("C", ["--mean", "0.485,0.456,0.406", "--std", "0.229,0.224,0.225"], (plain - mean) / std),
        ("C", ["--mean=-0.5", "--std", "2"], (plain + 0.5) / 2),
        ("C", ["--range", "0..255", "--mean", "128", "--std", "64"], (plain * 255 - 128) / 64),
        ("C", ["--channels", "bgr"], plain[:, ::-1]),
        ("C", ["--channels", "bgr", "--mean", "0.1,0.2,0.3"], plain[:, ::-1] - np.array([0.1, 0.2, 0.3]).reshape(3, 1, 1)),
        ("C", ["--channels", "grey"], grey),
        (1, [], grey),
        (3, [], plain),
        (4, [], np.concatenate([plain, np.ones((1, 1, 6, 8))], 1)),
    ]:
        found = as_array(polyphase, same(channels), photo, tmp_path, *flags)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6, err_msg=str(flags))
    raw = as_array(polyphase, same("C", TensorProto.UINT8), photo, tmp_path, "--range", "-1..1")
    np.testing.assert_array_equal(raw, PHOTO.transpose(2, 0, 1)[None])
    three = as_array(polyphase, same("r3", shape=["C", "H", "W"]), photo, tmp_path)
    np.testing.assert_allclose(three, plain[0], rtol=1e-6)


@pytest.mark.parametrize("mode", ["L", "LA", "RGBA", "P", "1", "I;16"])
def test_every_kind_of_png_is_read(polyphase, same, tmp_path, mode):
    image = Image.fromarray(RNG.integers(0, 65536, (6, 8), np.uint16)) if mode == "I;16" else Image.fromarray(PHOTO).convert(mode)
    image.save(tmp_path / "a.png")
    if mode == "I;16":
        expected = np.repeat((np.asarray(image) / 65535)[None, None], 3, 1)
    else:
        expected = np.asarray(image.convert("RGBA").convert("RGB") if mode != "LA" else image.convert("L").convert("RGB"))
        expected = expected.transpose(2, 0, 1)[None] / 255
    np.testing.assert_allclose(as_array(polyphase, same(3), tmp_path / "a.png", tmp_path), expected, atol=1e-6)


def test_outputs_are_written_as_images(polyphase, same, photo, tmp_path):
    for flags in ([], ["--range", "-1..1"], ["--channels", "bgr"]):
        polyphase("run", same(), "--input", photo, "--output", tmp_path / "copy.png", *flags)
        np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "copy.png")), PHOTO)
    values = np.array([[-1, 0, 0.5, 1, 2, np.nan]], "f4").reshape(1, 1, 1, 6)
    np.save(tmp_path / "v.npy", values)
    polyphase("run", same(), "--input", tmp_path / "v.npy", "--output", tmp_path / "v.png")
    assert np.asarray(Image.open(tmp_path / "v.png")).tolist() == [[0, 0, 128, 255, 255, 0]]
    polyphase("run", same(), "--input", tmp_path / "v.npy", "--output", tmp_path / "v.png", "--output-range", "-1..1")
    assert np.asarray(Image.open(tmp_path / "v.png")).tolist() == [[0, 128, 191, 255, 255, 0]]


def test_sounds_go_in_and_out(polyphase, same, tmp_path):
    model = same("sound", shape=[1, "C", "L"])
    samples = RNG.integers(-32768, 32768, (500, 2)).astype("<i2")
    with wave.open(str(tmp_path / "a.wav"), "wb") as file:
        file.setparams((2, 2, 16000, 0, "NONE", ""))
        file.writeframes(samples.tobytes())
    np.testing.assert_allclose(as_array(polyphase, model, tmp_path / "a.wav", tmp_path), samples.T[None] / 32768, atol=1e-7)
    polyphase("run", model, "--input", tmp_path / "a.wav", "--output", tmp_path / "b.wav")
    with wave.open(str(tmp_path / "b.wav")) as file:
        assert file.getparams()[:4] == (2, 2, 16000, 500)
        np.testing.assert_array_equal(np.frombuffer(file.readframes(500), "<i2").reshape(-1, 2), samples)
    polyphase("run", model, "--input", tmp_path / "seen.npy", "--output", tmp_path / "c.wav")
    assert wave.open(str(tmp_path / "c.wav")).getframerate() == 22050
    polyphase("run", model, "--input", tmp_path / "a.wav", "--output", tmp_path / "d.wav", "--sample-rate", 8000)
    assert wave.open(str(tmp_path / "d.wav")).getframerate() == 8000


# ---------------------------------------------------------------- what is refused, and how


@pytest.fixture(scope="module")
def bad(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bad")
    np.savez(folder / "other.npz", z=np.zeros(3, "f4"))
    np.savez(folder / "extra.npz", x=np.zeros((1, 3, 4, 5), "f4"), mask=np.zeros(3))
    np.savez(folder / "f64.npz", x=np.zeros((1, 3, 4, 5)))
    np.savez(folder / "channels.npz", x=np.zeros((1, 4, 4, 5), "f4"))
    np.savez(folder / "rank.npz", x=np.zeros((3, 4, 5), "f4"))
    np.savez(folder / "objects.npz", x=np.array([{}], dtype=object))
    np.savez(folder / "good.npz", x=np.zeros((1, 3, 4, 5), "f4"))
    (folder / "nothing.npz").touch()
    (folder / "text.npz").write_text("x = zeros")
    (folder / "cut.npz").write_bytes((folder / "good.npz").read_bytes()[:-30])
    damaged = bytearray((folder / "good.npz").read_bytes())
    damaged[200] ^= 1
    (folder / "damaged.npz").write_bytes(damaged)
    np.save(folder / "f16.npy", np.zeros((1, 3, 4, 5), "f2"))
    (folder / "cut.npy").write_bytes((folder / "f16.npy").read_bytes()[:-1])
    (folder / "text.png").write_text("a picture")
    Image.fromarray(PHOTO).save(folder / "whole.png")
    (folder / "cut.png").write_bytes((folder / "whole.png").read_bytes()[:-40])
    (folder / "text.wav").write_text("a sound")
    (folder / "folder.npy").mkdir()
    (folder / "folder.npz").mkdir()
    return folder


@pytest.mark.parametrize("name, said", [
    ("absent.npz", ["cannot open", "No such file or directory"]),
    ("folder.npz", ["is a folder"]),
    ("nothing.npz", ["is empty"]),
    ("text.npz", ["is not an .npz archive", "numpy.savez"]),
    ("cut.npz", ["is not an .npz archive"]),
    ("damaged.npz", ["x.npy' is damaged"]),
    ("other.npz", ["holds 'z', which is no input", "The inputs are 'x'."]),
    ("extra.npz", ["holds 'mask', which is no input", "The inputs are 'x'."]),
    ("f64.npz", ["gives input 'x' as f64, expected f32", "astype(numpy.float32)"]),
    ("channels.npz", ["input 'x' has the shape [1, 4, 4, 5]; expected [N, 3, H, W]", "axis 1 must be 3, found 4", "polyphase inspect"]),
    ("rank.npz", ["input 'x' has the shape [3, 4, 5]", "rank 4 is needed, found 3"]),
    ("objects.npz", ["which no tensor can hold", "astype"]),
])
def test_archives_that_do_not_fit_are_refused_by_name(polyphase, up, bad, tmp_path, name, said):
    done = polyphase("run", up, "--inputs", bad / name, "--outputs", tmp_path / "out.npz", expect=1)
    for words in [str(bad / name), *said]:
        assert words in done.stderr, done.stderr
    assert not list(tmp_path.iterdir()) and done.stdout == ""


@pytest.mark.parametrize("words, said", [
    (["--input", "x={}/absent.npy"], ["absent.npy", "No such file"]),
    (["--input", "x={}/folder.npy"], ["folder.npy", "is a folder"]),
    (["--input", "x={}/cut.npy"], ["cut.npy", "promises 120 bytes", "found 119"]),
    (["--input", "x={}/f16.npy"], ["f16.npy", "as f16, expected f32"]),
    (["--input", "x={}/text.png"], ["text.png", "not a sound PNG"]),
    (["--input", "x={}/cut.png"], ["cut.png", "not a sound PNG"]),
    (["--input", "x={}/text.wav"], ["text.wav"]),
    (["--input", "x={}/good.npz"], ["ends in none of .npy, .png, .wav", "--inputs FILE.npz"]),
    (["--input", "q={}/f16.npy"], ["'q', which is no input", "The inputs are 'x'."]),
    (["--input", "x="], ["expected NAME=VALUE"]),
    (["--inputs", "{}/good.npz", "--input", "{}/whole.png"], ["input 'x' is given twice"]),
    ([], ["input 'x' (f32 Nx3xHxW) is not given", "--input x=FILE.npy"]),
    (["--input", "{}/whole.png", "--range", "1..0"], ["--range is '1..0', expected LOW..HIGH"]),
    (["--input", "{}/whole.png", "--range", "wide"], ["--range is 'wide'"]),
    (["--input", "{}/whole.png", "--std", "1,0,1"], ["--std is 0"]),
    (["--input", "{}/whole.png", "--mean", "1,2"], ["--mean has 2 numbers for 3 channels"]),
    (["--input", "{}/whole.png", "--channels", "cmyk"], ["'cmyk', expected rgb, bgr, grey or rgba"]),
    (["--input", "{}/whole.png", "--channels", "grey"], ["takes 3 channels", "gives 1"]),
    (["--inputs", "{}/good.npz", "--output", "y={}/out.tiff"], ["ends in none of .npy, .png, .wav"]),
    (["--inputs", "{}/good.npz", "--output", "q={}/out.npy"], ["names no output", "the outputs are 'y'"]),
    (["--inputs", "{}/good.npz", "--output", "{}/o.npy", "--output", "{}/o.npy"], ["o.npy' is written twice"]),
    (["--inputs", "{}/good.npz", "--output", "{}/o.png"], ["an image has 1, 3 or 4 channels", "Write it as .npy instead."]),
    (["--inputs", "{}/good.npz", "--output", "{}/o.wav"], ["a sound is f32 or f64 of shape"]),
    (["--inputs", "{}/good.npz", "--output", "{}/o.png", "--output-range", "2..1"], ["--output-range is '2..1'"]),
], ids=lambda value: " ".join(value).replace("{}/", "") if value and value[0].startswith("--") else "")
def test_files_that_do_not_fit_are_refused_by_name(polyphase, up, bad, words, said):
    before = sorted(bad.iterdir())
    done = polyphase("run", up, *[word.replace("{}", str(bad)) for word in words], expect=1)
    for part in said:
        assert part in done.stderr, done.stderr
    assert sorted(bad.iterdir()) == before, "nothing is written, no temporary file is left"


# ---------------------------------------------------------------- writing that fails


WRITES = {
    "engine": ["compile", "{model}", "-o", "{path}"],
    "archive": ["run", "{model}", "--inputs", "{inputs}", "--outputs", "{path}"],
    "graph": ["inspect", "{model}", "--graph", "{path}"],
    "page": ["inspect", "{model}", "--shape", "x=1x3x4x5", "--html", "{path}"],
    "trace": ["explain", "{model}", "--shape", "x=1x3x4x5", "--trace", "{path}"],
}


@pytest.mark.parametrize("kind", list(WRITES))
def test_what_cannot_be_written_is_refused_and_leaves_nothing(polyphase, up, tmp_path, kind):
    np.savez(tmp_path / "in.npz", x=np.zeros((1, 3, 4, 5), "f4"))
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("not a folder")
    before = sorted(tmp_path.iterdir())

    def write(path, expect):
        return polyphase(*[word.format(model=up, inputs=tmp_path / "in.npz", path=path) for word in WRITES[kind]], expect=expect)

    for path, said in [(tmp_path / "folder", "is a folder"), (tmp_path / "none" / "a", "No such file or directory"),
                       (tmp_path / "file" / "a", "Not a directory"), ("/dev/full", "")]:
        done = write(path, 1)
        assert str(path) in done.stderr and said in done.stderr, done.stderr
        assert sorted(tmp_path.iterdir()) == before and not list((tmp_path / "folder").iterdir())
    if os.geteuid() != 0:  # root may write anywhere
        (tmp_path / "folder").chmod(0o500)
        assert "Permission denied" in write(tmp_path / "folder" / "a", 1).stderr


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 KiB, where this machine lets us mount one."""
    (tmp_path / "disk").mkdir()
    if os.system(f"mount -t tmpfs -o size=64k none '{tmp_path}/disk' 2>/dev/null") != 0:
        pytest.skip("mounting a small file system is not allowed here")
    yield tmp_path / "disk"
    os.system(f"umount '{tmp_path}/disk'")


@pytest.mark.parametrize("name", ["out.npz", "out.npy", "out.png", "out.wav", "m.ppe"])
def test_a_full_disk_keeps_the_old_file_and_no_half_of_the_new(polyphase, same, small_disk, tmp_path, name):
    sound = name.endswith(".wav")
    model = same("sound", shape=[1, "C", "L"]) if sound else same()
    array = RNG.random((1, 1, 200_000) if sound else (1, 3, 400, 400), np.float32)
    np.save(tmp_path / "in.npy", array)
    (small_disk / name).write_text("old")
    if name == "m.ppe":
        weights = RNG.random((64, 64, 3, 3), np.float32)
        model = small_models.save(tmp_path / "big.onnx", [helper.make_node("Conv", ["x", "w"], ["y"])],
                                  [("x", TensorProto.FLOAT, [1, 64, 8, 8])], [("y", TensorProto.FLOAT, None)], [("w", weights)])
        done = polyphase("compile", model, "-o", small_disk / name, expect=1)
    elif name == "out.npz":
        done = polyphase("run", model, "--input", tmp_path / "in.npy", "--outputs", small_disk / name, expect=1)
    else:
        done = polyphase("run", model, "--input", tmp_path / "in.npy", "--output", small_disk / name, expect=1)
    assert f"cannot write '{small_disk / name}" in done.stderr, done.stderr
    assert [path.name for path in small_disk.iterdir()] == [name] and (small_disk / name).read_text() == "old"

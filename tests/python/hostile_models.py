"""Hostile and broken ONNX models, each with the whole message that must refuse it.

    hostile_models.py FOLDER

Writes FOLDER/NAME/model.onnx (with what lies beside it) and FOLDER/NAME/expected.txt for tests/import/hostile_test.cpp. An empty
expected.txt stands for a model that is odd but legal.
"""
import json
import pathlib
import sys

from hostile import CASES

MESSAGES = pathlib.Path(__file__).with_name("hostile_models.json")


def main() -> int:
    root = pathlib.Path(sys.argv[1])
    messages = json.loads(MESSAGES.read_text()) if MESSAGES.exists() else {}
    for name, build in CASES.items():
        folder = root / name
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            old.rmdir() if old.is_dir() and not old.is_symlink() else old.unlink()
        made, beside = build(), None
        if isinstance(made, tuple):
            made, beside = made
        (folder / "model.onnx").write_bytes(made if isinstance(made, bytes) else made.SerializeToString())
        if beside is not None:
            beside(folder)
        (folder / "expected.txt").write_text(messages.get(name, "no message is recorded in hostile_models.json"))
    print(f"{len(CASES)} models")
    return 0


if __name__ == "__main__":
    sys.exit(main())

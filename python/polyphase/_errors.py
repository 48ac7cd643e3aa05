"""The exceptions of Polyphase."""

from __future__ import annotations


class Error(Exception):
    """What Polyphase refuses, and why. str() is the whole text: what was found, what was expected, what to do.

    Raised as one of the classes below it, which are also what Python calls such an error.

    code: 'invalid_argument', 'invalid_model', 'unsupported', 'shape_mismatch', 'io', 'corrupt', 'incompatible',
        'out_of_memory' or 'cancelled'; docs/errors.md says what each means.
    message: what was found and what was expected.
    hint: what to do.
    node: the model's node that it is about; may be empty.
    trail: the way to that node, innermost first: ("in function 'f'", "while reading model.onnx").
    """

    code: str
    message: str
    hint: str
    node: str
    trail: tuple[str, ...]

    def __init__(self, message: str, code: str = "invalid_argument", hint: str = "", node: str = "", trail: tuple[str, ...] = ()):
        super().__init__(message, code, hint, node, tuple(trail))
        self.message = message
        self.code = code
        self.hint = hint
        self.node = node
        self.trail = tuple(trail)

    def __str__(self) -> str:
        text = f"node '{self.node}': " if self.node else ""
        text += self.message
        if self.hint:
            text += f" {self.hint}"
        if self.trail:
            text += f" ({'; '.join(self.trail)})"
        return text


class ArgumentError(Error, ValueError):
    """invalid_argument or shape_mismatch: a call or an option is wrong; also a ValueError."""


class ModelError(Error, ValueError):
    """invalid_model, corrupt or incompatible: a model or an engine that cannot be used as it is; also a ValueError."""


class UnsupportedError(Error, NotImplementedError):
    """unsupported: legal, but Polyphase does not have it; also a NotImplementedError."""


class FileError(Error, OSError):
    """io: a file cannot be opened, read or written; also an OSError."""


class OutOfMemoryError(Error, MemoryError):
    """out_of_memory: a limit on memory was reached; also a MemoryError."""


class CancelledError(Error, TimeoutError):
    """cancelled: a run did not end before its deadline; also a TimeoutError."""


_OF_CODE = {
    "invalid_argument": ArgumentError,
    "shape_mismatch": ArgumentError,
    "invalid_model": ModelError,
    "corrupt": ModelError,
    "incompatible": ModelError,
    "unsupported": UnsupportedError,
    "io": FileError,
    "out_of_memory": OutOfMemoryError,
    "cancelled": CancelledError,
}


def from_native(code: str, message: str, hint: str, node: str, trail: list[str]) -> Error:
    """The exception of what the extension says."""
    return _OF_CODE.get(code, Error)(message, code, hint, node, tuple(trail))

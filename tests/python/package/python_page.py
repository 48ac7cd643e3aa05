"""docs/python.md: the guide as it stands, then the reference out of the package's docstrings. Prints the page; > docs/python.md after a change."""

from __future__ import annotations

import inspect
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs/python.md"
MARK = "<!-- From here on written by tests/python/package/python_page.py out of the docstrings. -->\n"


def signature(name: str, public: object) -> str:
    if hasattr(public, "__nb_signature__"):  # of the extension: the first line of the docstring
        text = re.sub(r"^\w+\((self(, )?)?", "(", inspect.getdoc(public).split("\n")[0])
    else:
        text = str(inspect.signature(public)).replace("''", '""').replace("'", "")
    text = re.sub(r"\b(typing|collections\.abc|os|polyphase\._native|_native)\.", "", text)
    return f"{name}{text}".replace(".__call__", "")


def words(public: object) -> str:
    """The docstring, as it was laid out."""
    text = inspect.getdoc(public)
    if hasattr(public, "__nb_signature__"):
        text = text.split("\n", 2)[2]
    return f"```text\n{inspect.cleandoc(text)}\n```\n"


def members(kind: type):
    """A class's own, without the operators' methods: docs/operators.md has those."""
    for key, value in vars(kind).items():
        if (getattr(value, "__module__", None) or "").endswith("._network_layers"):
            continue
        if isinstance(value, staticmethod):
            value = value.__func__
        if (not key.startswith("_") or key == "__call__") and (callable(value) or isinstance(value, property)):
            yield key, value


def reference(package) -> str:
    out = ["\n## Reference\n"]
    for name in package.__all__:
        public = getattr(package, name)
        if inspect.isclass(public) and issubclass(public, Exception):
            bases = ", ".join(base.__name__ for base in public.__bases__)
            out.append(f"### {name}({bases})\n\n{words(public)}")
        elif inspect.isclass(public):
            out.append(f"### {name}\n\n{words(public)}")
            for key, value in members(public):
                title = f"{name.lower()}.{key}" if isinstance(value, property) else signature(f"{name.lower()}.{key}", value)
                out.append(f"**`{title}`**\n\n{words(value)}")
        elif callable(public):
            out.append(f"### {name}\n\n**`{signature(name, public)}`**\n\n{words(public)}")
        else:
            out.append(f"### {name}\n\nThe release, a str like '0.1.0'.\n")
    for name in package.torch.__all__:
        public = getattr(package.torch, name)
        out.append(f"### torch.{name}\n\n**`{signature(f'torch.{name}', public)}`**\n\n{words(public)}")
    for path, module in (("nn", package.nn), ("nn.functional", package.nn.functional)):
        for name in module.__all__:
            public = getattr(module, name)
            if inspect.isclass(public):
                out.append(f"### {path}.{signature(name, public)}\n\n{words(public)}")
                for key, value in members(public):
                    if inspect.getdoc(value):
                        title = f"{name.lower()}.{key}" if isinstance(value, property) else signature(f"{name.lower()}.{key}", value)
                        out.append(f"**`{title}`**\n\n{words(value)}")
            elif callable(public):
                out.append(f"### {path}.{name}\n\n**`{signature(name, public)}`**\n\n{words(public)}")
    return "\n".join(out)


def page(package) -> str:
    guide, mark, _ = PAGE.read_text().partition(MARK)
    assert mark, f"{PAGE} has lost the line behind which the reference stands"
    return guide + mark + reference(package)


if __name__ == "__main__":
    import polyphase

    sys.stdout.write(page(polyphase))

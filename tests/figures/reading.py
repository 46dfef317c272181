"""How tests read a picture: its words, and the data of its charts."""

import re
import xml.etree.ElementTree as ET

import numpy as np

SVG = "{http://www.w3.org/2000/svg}"


def words(picture):
    """Return everything that is written in a picture, in its order."""
    root = ET.fromstring(picture.svg)
    found = ("".join(text.itertext()) for text in root.iter(f"{SVG}text"))
    return [text.strip() for text in found]


def numbers(picture):
    """Return every number that is written in a picture, in its order."""
    found = (re.fullmatch(r"[−-]?\d*\.?\d+", text) for text in words(picture))
    return np.array([float(hit[0].replace("−", "-")) for hit in found if hit])


def shows(picture, expected, digits=2):
    """Whether all these numbers are written in a picture, one after another."""
    found, expected = numbers(picture), np.ravel(np.array(expected, dtype=float))
    rounded = expected.round(digits) + 0.0
    return any(
        np.allclose(found[k : k + len(rounded)], rounded, rtol=0, atol=1e-9)
        for k in range(len(found) - len(rounded) + 1)
    )

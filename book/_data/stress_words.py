"""Make stress_words.txt: English words with the stressed letter as a capital.

    python stress_words.py cmudict.dict american-english

An author's step, whose result is stored, so that no reader needs the two sources. The
pronunciations are those of the CMU Pronouncing Dictionary (cmudict.dict, in the package
cmudict 1.1.3), and the words are those that are also in a list for spell checkers
(american-english, in Debian's package wamerican 2020.12.07). The notices of both are in
stress_words_licences.txt.
"""

import re
import sys
from pathlib import Path

# A group of vowel letters; u after q and y in front of a vowel ("beyond") are none.
VOWELS = re.compile(r"(?:(?<!q)u|[aeio]|y(?![aeiou]))+")
SILENT_E = re.compile(r"[^aeiouy]e$")


def vowel_groups(word):
    """Return where each group of vowel letters begins, a silent e at the end left out.

    >>> vowel_groups("telephone")
    [1, 3, 6]
    """
    groups = [match.start() for match in VOWELS.finditer(word)]
    return groups[:-1] if len(groups) > 1 and SILENT_E.search(word) else groups


def stressed_letter(word, sounds):
    """Return the index of the first letter of the stressed vowel, or None if unclear.

    >>> stressed_letter("hotel", ["HH", "OW0", "T", "EH1", "L"])
    3
    """
    stresses = [sound[-1] for sound in sounds if sound[-1].isdigit()]
    groups = [match.start() for match in VOWELS.finditer(word)]
    if len(groups) == len(stresses) + 1:
        groups = vowel_groups(word)
    clear = len(groups) == len(stresses) >= 2 and stresses.count("1") == 1
    return groups[stresses.index("1")] if clear else None


def read(path):
    """Return a dict from each word to the set of the letters that may be stressed."""
    found = {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        name, *sounds = line.split("#")[0].split()
        word = re.sub(r"\(\d\)$", "", name)  # present(1) is another way to say present
        if re.fullmatch("[a-z]{3,14}", word):
            found.setdefault(word, set()).add(stressed_letter(word, sounds))
    return found


def main(dictionary, spelling):
    known = set(Path(spelling).read_text(encoding="utf-8").split())
    lines = []
    for word, letters in sorted(read(dictionary).items()):
        if word in known and len(letters) == 1 and None not in letters:
            [i] = letters
            lines.append(f"{word[:i]}{word[i].upper()}{word[i + 1 :]}\n")
    path = Path(__file__).with_suffix(".txt")
    path.write_text("".join(lines), encoding="utf-8", newline="\n")
    print(len(lines), "words")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""What can be said of the stress of a word without an encoder: for chapter 13."""

from collections import Counter, defaultdict

from _data.stress_words import vowel_groups

LONGEST_SUFFIX, LEAST = 7, 3


def first_vowel(word):
    """Return the first group of vowel letters, which is stressed most often."""
    return vowel_groups(word)[0]


def syllables(word):
    """Return the number of groups of vowel letters."""
    return len(vowel_groups(word))


def suffixes(word):
    """Yield the endings of a word, the longest first, and nothing at last."""
    for k in range(min(LONGEST_SUFFIX, len(word)), -1, -1):
        yield word[len(word) - k :]


def by_suffix(pairs):
    """Return a table: the commonest distance from the end, for the longest suffix."""
    seen = defaultdict(Counter)
    for word, target in pairs:
        for suffix in suffixes(word):
            seen[suffix][len(word) - target] += 1

    def answer(word):
        for suffix in suffixes(word):
            if seen[suffix].total() >= LEAST:
                [(distance, _)] = seen[suffix].most_common(1)
                return len(word) - distance

    return answer


def by_suffix_and_vowels(pairs):
    """Return the same table, told by a person what the syllables of a word are.

    It counts groups of vowel letters, not letters, and knows how many a word has.
    """
    seen = defaultdict(Counter)
    for word, target in pairs:
        groups = vowel_groups(word)
        for suffix in suffixes(word) if target in groups else ():
            seen[suffix, len(groups)][groups.index(target)] += 1

    def answer(word):
        groups = vowel_groups(word)
        for suffix in suffixes(word):
            counts = seen[suffix, len(groups)]
            if counts.total() >= LEAST:
                [(k, _)] = counts.most_common(1)
                return groups[k]
        return groups[0]

    return answer


def accuracy(answer, pairs):
    """Return the share of words for which a function finds the stressed letter."""
    return sum(answer(word) == target for word, target in pairs) / len(pairs)

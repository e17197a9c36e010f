"""Small statistics about the words of a text."""

import re
from collections import Counter

WORD = re.compile(r"[a-z']+")


def read_words(text: str) -> list[str]:
    """Return the words of the text in lower case."""
    return WORD.findall(text.lower())


def count_words(words: list[str]) -> Counter[str]:
    """Return how often each word occurs."""
    counts: Counter[str] = Counter()
    for word in words:
        counts[word] += 1
    return counts


def shortest_word(words: list[str]) -> str:
    """Return the shortest word, or an empty string if there are no words."""
    if not words:
        return ""
    return min(words, key=len)


def longest_word(words: list[str]) -> str:
    """Return the longest word, or an empty string if there are no words."""
    raise NotImplementedError


def mean_length(words: list[str]) -> float:
    """Return the mean length of the words, or zero if there are no words."""
    if not words:
        return 0.0
    return sum(len(word) for word in words) / len(words)


def report(text: str) -> str:
    """Return a few lines about the text."""
    words = read_words(text)
    lines = [
        f"words: {len(words)}",
        f"shortest: {shortest_word(words)}",
        f"longest: {longest_word(words)}",
        f"mean length: {mean_length(words):.1f}",
    ]
    for word, count in count_words(words).most_common(3):
        lines.append(f"{word}: {count}")
    return "\n".join(lines)

"""Files in three languages in which an accept must be right to the byte; `@` is where a blank is typed and ghost text
awaited. And functions to fill in each.
"""

from dataclasses import dataclass

MARK = b"@"
_EMOJI = "🙂🙂"


@dataclass(frozen=True, slots=True)
class Language:
    """The beginning and the end of a function, the name of a value, and the placeholder for unwritten code."""

    suffix: str
    head: str
    tail: str
    name: str
    hole: str


LANGUAGES = {
    "python": Language("py", "def add(first):", "", "total =", "..."),
    "typescript": Language(
        "ts",
        "function add(first: number) {",
        "}\n",
        "const total =",
        'throw new Error("not implemented");',
    ),
    "rust": Language("rs", "fn add(first: i32) -> i32 {", "}\n", "let total =", "todo!()"),
}
CASES = ("LF", "CRLF", "BOM", "emoji", "tabs", "no newline at the end", "text behind")
# Each case once in Python; in the other languages those in which line ends and columns differ.
CASES_BY_LANGUAGE = [("python", case) for case in CASES] + [
    (language, case) for language in ("typescript", "rust") for case in ("CRLF", "emoji")
]


def place(language: Language, case: str) -> bytes:
    """The file of a case, with the mark in its second line."""
    line = f"    {language.name}@"
    if case == "emoji":
        line = f'    {language.name.replace("total", "name")} "{_EMOJI}"; {language.name}@'
    elif case == "tabs":
        line = f"\t{language.name}@"
    elif case == "text behind":
        line = "    return max(first,@)"
    return _written(f"{language.head}\n{line}\n{language.tail}", case)


def _written(text: str, case: str) -> bytes:
    """The bytes of a file with `text`, line ends and marks as the case has them."""
    if case == "no newline at the end":
        text = text.removesuffix("\n")
    if case == "CRLF":
        text = text.replace("\n", "\r\n")
    return text.encode("utf-8-sig" if case == "BOM" else "utf-8")


def stub(language: Language) -> str:
    """A function that is nothing but a placeholder, in its second line."""
    return f"{language.head}\n    {language.hole}\n{language.tail}"


def stub_of(language: Language, case: str) -> bytes:
    """The file of a case with such a function, where emoji and text after are a comment after the placeholder."""
    indent = "\t" if case == "tabs" else "    "
    comment = "#" if language.suffix == "py" else "//"
    behind = {"emoji": f"  {comment} {_EMOJI}", "text behind": f"  {comment} not yet"}.get(case, "")
    return _written(f"{language.head}\n{indent}{language.hole}{behind}\n{language.tail}", case)


def is_filled(language: Language, before: bytes, after: bytes) -> bool:
    """Return whether `after` is `before` with one line of code for the placeholder, and all else to the byte."""
    head, tail = before.split(language.hole.encode())
    code = after.removeprefix(head).removesuffix(tail)
    return after == head + code + tail and code.startswith(b"return None") and b"\n" not in code


def statement(language: Language) -> str:
    """A function with a statement that can be written again, in its third line.

    It is the last, since the scripted engine writes no semicolon.
    """
    end = "" if language.suffix == "py" else ";"
    return f"{language.head}\n    {language.name} first{end}\n    return total + 1{end}\n{language.tail}"


def holes(language: Language) -> str:
    """A function with a placeholder before and after a line that stays, its third.

    In Rust only after it: elsewhere a value needs a semicolon, which the scripted engine does not write.
    """
    end = "" if language.suffix == "py" else ";"
    first = "let early = first;" if language.suffix == "rs" else language.hole
    lines = [first, f"{language.name} first{end}", language.hole]
    return "\n".join([language.head, *(f"    {line}" for line in lines), language.tail])

"""Secrets: keys, tokens and passwords in other files, which are neither offered nor sent.

A guess by patterns and entropy: it misses a secret that looks like a word, and takes a hash for a key.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

# What begins a key or token, and the characters that follow. From the lists that vendors publish for scanners: GitHub's
# "supported secret scanning patterns", AWS's "IAM identifiers", GitLab's "token prefixes", Slack's "token types",
# Stripe's "API keys"; compared with the rules of gitleaks (MIT). Lengths are shorter than theirs, since a key that is
# cut off is one, too.
_KEYS = (
    # Clouds.
    r"(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA|AROA|AIDA)[A-Z0-9]{12,} AIza[\w-]{20,} ya29\.[\w-]{16,} "
    r"GOCSPX-[\w-]{16,} LTAI[A-Za-z0-9]{12,} AKCp[A-Za-z0-9]{20,} do[opr]_v1_[a-f0-9]{20,} dapi[a-f0-9]{28,} "
    r"(?:hvs|hvb|hvr)\.[\w-]{16,} [\w-]{10,20}\.atlasv1\.[\w-]{20,} HRKU-[\w-]{20,} \w{3}\dQ~[\w.~-]{30,} "
    # Forges and packages.
    r"gh[opsur]_[A-Za-z0-9]{16,} github_pat_\w{16,} "
    r"gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|soat|oas|ffct)-[\w-]{16,} npm_[A-Za-z0-9]{16,} pypi-[\w-]{24,} "
    r"rubygems_[a-f0-9]{24,} dckr_(?:pat|oat)_[\w-]{16,} AT(?:ATT|CTT|BB)[\w=-]{20,} CLOJARS_[a-z0-9]{24,} "
    r"lin_api_[A-Za-z0-9]{20,} figd_[\w-]{20,} "
    # Models.
    r"hf_[A-Za-z0-9]{16,} r8_[A-Za-z0-9]{20,} gsk_[A-Za-z0-9]{20,} pplx-[A-Za-z0-9]{20,} "
    r"sk-(?:[a-z0-9]{2,12}-)?+(?=[\w-]{0,200}\d)(?=[\w-]{0,200}[A-Za-z])[\w-]{16,} "
    # Messages and mail.
    r"xox[abeoprs]-[\w-]{8,} xapp-\d-[\w-]{8,} hooks\.slack\.com/(?:services|workflows)/[\w/-]{16,} "
    r"\d{8,10}:AA[\w-]{30,} [MNO][\w-]{22,}\.[\w-]{6}\.[\w-]{24,} "
    r"discord(?:app)?\.com/api/webhooks/\d+/[\w-]{20,} SG\.[\w-]{16,}\.[\w-]{16,} key-[a-f0-9]{32} "
    r"[a-f0-9]{32}-us\d{1,2} xkeysib-[a-f0-9]{24,} (?:AC|SK)[a-f0-9]{32} EAA[A-Za-z0-9]{40,} "
    # Payment and shops.
    r"(?:sk|rk|pk)_(?:live|test|prod)_\w{8,} whsec_[\w+/=]{16,} sq0(?:atp|csp|idp)-[\w-]{16,} "
    r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{24,} access_token\$production\$\w{8,}\$\w{16,} "
    # Others.
    r"NRAK-[A-Z0-9]{20,} gl(?:c|sa)_[\w+/=-]{24,} PMAK-[a-f0-9-]{24,} sntry[su]_[\w+/=-]{24,} "
    r"AGE-SECRET-KEY-1[A-Z0-9]{20,} pscale_(?:tkn|pw|oauth)_[\w.=-]{24,} sbp_[a-f0-9]{24,} "
    r"dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{24,} ops_eyJ[\w+/=-]{20,} p8e-[a-z0-9]{24,} "
    # JSON web tokens, and what Azure and others put into connection strings.
    r"eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)? (?:AccountKey|SharedAccessKey|SharedSecret\w*|sig)=[\w+/%]{16,}={0,2} "
)
# The names of what is secret, at the end of the name that it is given to: `db_password`, `clientSecret`, `API_KEY`.
_STRONG = (
    r"(?:pass(?:word|wd|phrase|code)?|pwd|secret|credentials?"
    r"|(?:api|access|account|auth|client|encryption|hmac|license|master|private|secret|session|shared|signing|storage)"
    r"[_.-]?key(?:[_.-]?id)?|(?:access|api|auth|bearer|bot|csrf|id|personal|refresh|secret|session|user)[_.-]?token"
    r"|secret[_.-]?(?:value|string)|auth(?:orization)?)s?"
)
# Names that say less: what they are given counts only if it looks like a key, too.
_WEAK = r"(?:tokens?|keys?|salt|nonce|seed|hash|digest|signature|cookie|bearer|sid)"
_NAME = rf"(?:(?<![A-Za-z0-9])|(?<=[a-z0-9])(?=[A-Z]))(?i:(?P<strong>{_STRONG})|{_WEAK})"
_LITERAL = r"""[A-Za-z@$]{0,3}(?P<quote>\"\"\"|\'\'\'|["'`])(?P<value>(?:\\.|(?!(?P=quote))[^\\\n])*)"""
_OR = r"""(?:[\w.\[\]"'()]{1,60}\s{0,4}(?:\bor\b|\|\||\?\?)\s{0,4})?"""
# What a secret is given to its name by: `PASSWORD: str = "..."`, `"password": "..."`, `set_password("...")`,
# `char secret[] = "..."`, `getenv("PASSWORD", "...")`, `#define PASSWORD "..."`.
_GIVEN = (
    rf"""{_NAME}["'`]?\]?(?:\[\w*\])?(?:\s{{0,4}}:\s{{0,4}}[&'\w.\[\]|<>?, ]{{1,40}}?(?==))?\s{{0,4}}"""
    rf"""(?::=|=>|[=!]==?|[=:(]|<-)\s{{0,40}}[(\[]?\s{{0,40}}{_OR}{_LITERAL}""",
    rf"""\b\w{{0,20}}(?:get|env|environ|default|config)\w{{0,9}}\(\s{{0,9}}["'`][\w.-]{{0,40}}?{_NAME}["'`],\s{{0,9}}(?:\w+=)?{_LITERAL}""",
    rf"#\s{{0,9}}define\s{{1,9}}\w{{0,40}}?{_NAME}\s{{1,40}}{_LITERAL}",
)
_NAMED = tuple(map(re.compile, _GIVEN))
_KEY = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(_KEYS.split())})")
_PRIVATE = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]{0,40}-----|\Z)"
    r"|PuTTY-User-Key-File-\d.*?(?:Private-MAC:[^\n]*|\Z)",
    re.DOTALL,
)
# A password in an address or in a connection string.
_ADDRESS = re.compile(
    r"(?<![\w+.-])[a-zA-Z][\w+.-]{0,40}://[^\s:/@\"'`]{0,80}:(?P<value>[^\s\"'`@]{1,200})@[\w\[{$%-]"
)
_CONNECTION = re.compile(
    r"(?i)(?<![a-z])(?:password|pwd|passwd|secret|token)="
    r"(?P<value>[^\s;&\"'`,()]{3,}(?=[;&\"'`])|(?=[^\s\d]*\d)[^\s;&\"'`,()]{3,}(?=\s))"
)
_HEADER = re.compile(r"(?i)\b(?:basic|bearer|token|apikey)\s(?P<value>[\w.~+/=-]{12,})")
# A password after a name: `auth = ("ann", "...")`, `HTTPBasicAuth("ann", "...")`, `login("ann", "...")`.
_PAIR = re.compile(
    r"""(?i)(?<![a-z])\w{0,20}(?:auth|login|credentials?)\s{0,4}(?:[=:]\s{0,4})?(?:new\s)?[\w.]{0,40}\(\s{0,9}"""
    rf"""(?:"[^"\n]{{1,80}}"|'[^'\n]{{1,80}}'|[\w.]{{1,40}}),\s{{0,40}}{_LITERAL}"""
)
# A string in several parts, `"hun" + "ter2"`, and one of them.
_PART = r"""(?:"[^"\\\n]{0,200}"|'[^'\\\n]{0,200}')"""
_PARTS = re.compile(rf"{_PART}(?:\s{{0,4}}[+.]?[\s\\]{{0,60}}{_PART}){{1,8}}")
# A string that could be a key as a whole. Shorter ones are words more often.
_WHOLE = re.compile(
    r"""(?P<quote>["'`])(?P<value>[\w+/=.~-]{20,}|[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){9,})(?P=quote)"""
)
_HEX = re.compile(r"(?:0x)?(?:[0-9a-f]{20,}|[0-9A-F]{20,})")
_UUID = re.compile(r"(?i)[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
# A placeholder of a value that comes from elsewhere: `<token>`, `${TOKEN}`, `{token}`, `%s`, `***`, `$TOKEN`, `xxxx`.
_PLACEHOLDER = re.compile(r"[<{$%].*|.*(?:\$\{|\{[^{}]*\}|%\(?\w+\)?[sd]).*|[\w-]*[xX*.]{4,}[\w-]*|[\W_]*")
# Words that are about a secret, and are none.
_ABOUT = (
    "a access account an api auth authorization basic bearer change changeme client confirm credential "
    "csrf current data digest dummy email env error example fake false field file form get hash header "
    "here hidden id input invalid key label login me missing my name new none null oauth oauth2 old "
    "optional param pass passcode passphrase passwd password path post private public pwd query refresh "
    "request required reset response s sample secret session set shared signing some str string test text "
    "the token true type url user username value your "
)
_WORDS = re.compile(rf"(?i)(?:{'|'.join(sorted(_ABOUT.split(), key=len, reverse=True))}|[_\W])*+")
_SENTENCE = re.compile(r"[A-Z][^\d]*\s[^\d]*\s[^\d]*")
_BEFORE = 100  # characters before a string in parts that may say what it is
_LONGEST = 4_000  # characters of a private key at most, so that much is looked at round a candidate


def secrets_in(text: str) -> list[tuple[int, int]]:
    """Return the half-open spans of likely keys, tokens and passwords in order: `hunter2` of `password = "hunter2"`."""
    return sorted({span for span in (*_found(text), *_found_in_parts(text)) if span[0] < span[1]})


def has_secret(data: bytes, start: int, stop: int) -> bool:
    """Return whether a part of a file, [start, stop), has a piece of a secret; the text around it says what it is."""
    begin = max(start - _LONGEST, 0)
    above = data[begin:start].decode("utf-8", "replace")
    text = data[start:stop].decode("utf-8", "replace")
    below = data[stop : stop + _LONGEST].decode("utf-8", "replace")
    first, last = len(above), len(above) + len(text)
    return any(one < last and two > first for one, two in secrets_in(above + text + below))


def redacted(text: str) -> str:
    """Return `text` with `...` for each secret in it; `password = "hunter2"` becomes `password = "..."`."""
    parts, at = list[str](), 0
    for start, stop in secrets_in(text):
        if stop > at:
            parts += [text[at : max(start, at)], "..." if start >= at else ""]
            at = stop
    return "".join((*parts, text[at:]))


def is_key(word: str) -> bool:
    """Return whether a word that is no string, such as a name, looks like a key or token."""
    return _KEY.fullmatch(word) is not None or _is_random(word)


def _found(text: str) -> Iterator[tuple[int, int]]:
    for pattern in (_KEY, _PRIVATE):
        yield from (match.span() for match in pattern.finditer(text))
    for pattern in (_ADDRESS, _CONNECTION, _PAIR):
        yield from (m.span("value") for m in pattern.finditer(text) if _may_be_secret(m["value"]))
    yield from (m.span("value") for m in _HEADER.finditer(text) if _has_digits(m["value"]))
    for pattern in _NAMED:
        for match in pattern.finditer(text):
            value = match["value"]
            if _may_be_secret(value) if match["strong"] else _is_mixed(value):
                yield match.span("value")
    yield from (m.span("value") for m in _WHOLE.finditer(text) if _is_random(m["value"]))


def _found_in_parts(text: str) -> Iterator[tuple[int, int]]:
    """Yield the parts of strings that are secrets once they are joined."""
    for parts in _PARTS.finditer(text):
        spans = [(p.start() + 1, p.end() - 1) for p in re.finditer(_PART, parts[0])]
        head = text[max(parts.start() - _BEFORE, 0) : parts.start()]
        joined = "".join(parts[0][start:end] for start, end in spans)
        if any(stop > len(head) for _, stop in _found(f'{head}"{joined}"')):
            yield from ((parts.start() + start, parts.start() + end) for start, end in spans)


def _may_be_secret(value: str) -> bool:
    """Return whether the text that is given to a name such as `password` may be one, and not words about it."""
    about = any(pattern.fullmatch(value) for pattern in (_PLACEHOLDER, _WORDS, _SENTENCE))
    return len(value) > 2 and not about


def _has_digits(value: str) -> bool:
    return any(sign.isdigit() for sign in value) and any(sign.isalpha() for sign in value)


def _is_mixed(value: str) -> bool:
    """Return whether `value` is one word of letters and digits as in a key, unlike `blake2b-256` or `user_id_2`."""
    found = re.fullmatch(r"[\w+/=.~-]{10,}", value) is not None and _has_digits(value)
    return found and re.search(r"[a-z]{4}|[A-Z]{4}", value) is None


def _is_random(value: str) -> bool:
    """Return whether `value` looks as if drawn by lot: hexadecimal, or letters and digits in no order.

    1. A UUID names something, and is no key by itself.  2. Hexadecimal digits have an entropy of 3 bits each, the limit
    of detect-secrets; its limit for base64, 4.5, cannot be met by a short text, so that it grows with the length here.
    3. Words have runs of small letters, and change between small, capital and digit seldom.
    """
    # 1.
    if len(value) < 20 or _UUID.fullmatch(value):
        return False
    # 2.
    if _HEX.fullmatch(value.replace(":", "")) and _has_digits(value):
        return len(value) >= 32 and _entropy(value) >= 3.0
    if not _has_digits(value) or _entropy(value) < min(4.5, 0.86 * math.log2(len(value))):
        return False
    # 3.
    return re.search(r"[a-z]{6}|[A-Z]{6}|(?:[a-z]{3,}[_./-]){2}", value) is None and _switches(value) >= 0.3


def _entropy(value: str) -> float:
    """The entropy of the characters of `value` in bits."""
    counts, size = Counter(value).values(), len(value)
    return -sum(count / size * math.log2(count / size) for count in counts)


def _switches(value: str) -> float:
    """The share of neighbours in `value` of which one is a small letter, a capital or a digit, and the other is not."""
    kinds = [(sign.islower(), sign.isupper(), sign.isdigit()) for sign in value]
    return sum(one != two for one, two in pairwise(kinds)) / max(len(value) - 1, 1)

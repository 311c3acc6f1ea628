"""Rules on secrets: what is compared with what a caller shows is compared in a time that tells nothing."""

import re
from collections.abc import Iterator

from tree import Finding, Tree, without_comments

_ROOMS = re.compile(r"server/(?:token_\w+|ended_tokens|http/inner_peer)\.(?:cc|h)$")
# IsSameDigest itself is there.
_COMPARES_ITSELF = "server/token_text.cc"

# What holds one, by our names, or the value of a table: `EndedTokens` has digests there.
_SECRET = r"(?!k[A-Z])\w*(?:[dD]igest|[sS]ecret)\w*|inside_|whole|Word\(\)"
_VALUE = rf"(?:\b(?:{_SECRET})|->second)(?:\[[^\]]*\]|\([^()]*\))?"
_LEFT = re.compile(rf"{_VALUE}\s*[=!]=")
_RIGHT = re.compile(rf"[=!]=\s*\*?(?:\w+(?:\(\))?(?:\.|->|::))*\b(?:{_SECRET})\b(?!\s*(?:\.|->|::))")
_BYTES = re.compile(r"\b\w*(?:memcmp|bcmp|strn?cmp|strn?casecmp)\s*\(")
_TEXTS = re.compile(r"(?:\b(?:equal|StartsWith|EndsWith|EqualsIgnoreCase|StrContains|lexicographical_compare)\s*\("
                    rf"[^;{{}}]*?|\.compare\s*\([^;{{}}]*?)\b(?:{_SECRET})\b(?!\.(?:size|empty))"
                    rf"|\b(?:{_SECRET})\.(?:compare|starts_with|ends_with)\s*\(")


def check_digests(tree: Tree) -> Iterator[Finding]:
    """Tokens' digests and secrets are compared by IsSameDigest: `==` ends sooner the sooner two of them differ."""
    for name in tree.ending(".cc", ".h"):
        if not _ROOMS.match(name):
            continue
        text = without_comments(tree.text(name))
        for pattern in (_LEFT, _RIGHT, _BYTES, _TEXTS):
            for match in pattern.finditer(text):
                if name == _COMPARES_ITSELF and match.group(0) == "CRYPTO_memcmp(":
                    continue
                yield Finding(name, text.count("\n", 0, match.start()) + 1, "digest",
                              f"'{' '.join(match.group(0).split())}': digests and secrets are compared by IsSameDigest "
                              "(server/token_text.h)")

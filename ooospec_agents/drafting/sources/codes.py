"""Names that parameters want as codes: of countries (ISO 3166) and of languages (ISO 639)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

_COUNTRIES = """
AE United Arab Emirates|AR Argentina|AT Austria|AU Australia|BE Belgium|BG Bulgaria|BR Brazil|CA Canada
CH Switzerland|CL Chile|CN China
CO Colombia|CZ Czech Republic|CZ Czechia|DE Germany|DK Denmark|EE Estonia|EG Egypt|ES Spain|FI Finland
FR France
GB United Kingdom|GB UK|GB England|GB Great Britain|GR Greece|HK Hong Kong|HR Croatia|HU Hungary|ID Indonesia
IE Ireland|IL Israel
IN India|IS Iceland|IT Italy|JP Japan|KE Kenya|KR South Korea|KR Korea|LT Lithuania|LU Luxembourg|LV Latvia
MA Morocco|MX Mexico
MY Malaysia|NG Nigeria|NL Netherlands|NL Holland|NO Norway|NZ New Zealand|PE Peru|PH Philippines|PK Pakistan
PL Poland
PT Portugal|RO Romania|RS Serbia|RU Russia|SA Saudi Arabia|SE Sweden|SG Singapore|SI Slovenia|SK Slovakia
TH Thailand
TR Turkey|TW Taiwan|UA Ukraine|US United States|US USA|US U.S|US America|VN Vietnam|ZA South Africa
"""
_LANGUAGES = """
ar Arabic|bg Bulgarian|cs Czech|da Danish|de German|el Greek|en English|es Spanish|fi Finnish|fr French
he Hebrew|hi Hindi
hu Hungarian|id Indonesian|it Italian|ja Japanese|ko Korean|nl Dutch|no Norwegian|pl Polish|pt Portuguese
ro Romanian
ru Russian|sv Swedish|th Thai|tr Turkish|uk Ukrainian|vi Vietnamese|zh Chinese|zh Mandarin
"""


def _read(lines: str) -> dict[str, str]:
    pairs = (entry.split(" ", 1) for line in lines.split("\n") for entry in line.split("|") if entry)
    return {name.lower(): code for code, name in pairs}


TABLES = {"country": _read(_COUNTRIES), "language": _read(_LANGUAGES), "lang": _read(_LANGUAGES)}
"""Codes by names in lower case, for each word by which a parameter says what it wants."""
WANTED = re.compile(r"code|iso|letter|character")


def codes_for(names: Collection[str], about: str) -> Mapping[str, str] | None:
    """Codes by names in lower case, where a parameter wants such codes; None where it wants none.

    Args:
        names: Words of the parameter's name.
        about: The parameter's name and description, lower case.
    """
    table = next((table for word, table in TABLES.items() if word in names), None)
    return table if WANTED.search(about) else None

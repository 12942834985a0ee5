"""Regions of large cities, for parameters that want "City, ST": a target adds them although nobody named them."""

from __future__ import annotations

_BY_REGION = {
    "AZ": "Phoenix, Tucson, Mesa, Scottsdale",
    "CA": "Los Angeles, San Francisco, San Diego, San Jose, Sacramento, Oakland, Fresno, Long Beach, Berkeley, "
    "Palo Alto, Anaheim, Bakersfield, Santa Rosa, Santa Monica, Mountain View, Sunnyvale, Fremont, Pasadena, "
    "Irvine, Napa",
    "CO": "Denver, Boulder, Colorado Springs",
    "DC": "Washington",
    "FL": "Miami, Orlando, Tampa, Jacksonville, Tallahassee",
    "GA": "Atlanta, Savannah",
    "HI": "Honolulu",
    "IL": "Chicago",
    "IN": "Indianapolis",
    "KY": "Louisville, Lexington",
    "LA": "New Orleans, Baton Rouge",
    "MA": "Boston, Cambridge",
    "MD": "Baltimore",
    "MI": "Detroit, Ann Arbor",
    "MN": "Minneapolis",
    "MO": "Kansas City, St. Louis",
    "NC": "Charlotte, Raleigh, Durham",
    "NE": "Omaha",
    "NJ": "Newark, Princeton, Jersey City",
    "NM": "Albuquerque, Santa Fe",
    "NV": "Las Vegas, Reno",
    "NY": "New York, New York City, Brooklyn, Manhattan, Buffalo, Albany",
    "OH": "Columbus, Cleveland, Cincinnati",
    "OK": "Oklahoma City, Tulsa",
    "OR": "Portland, Eugene",
    "PA": "Philadelphia, Pittsburgh",
    "TN": "Nashville, Memphis",
    "TX": "Houston, Dallas, Austin, San Antonio, El Paso, Fort Worth",
    "UT": "Salt Lake City",
    "VA": "Richmond, Virginia Beach, Arlington",
    "WA": "Seattle, Spokane, Tacoma",
    "WI": "Milwaukee, Madison",
}
REGIONS = {city.lower(): region for region, cities in _BY_REGION.items() for city in cities.split(", ")}
"""The region of a city, by its name in lower case."""

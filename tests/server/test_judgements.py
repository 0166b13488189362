"""What people say of links: kept, read, exported, compared with probabilities, and added to a run."""

import csv
import io
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from program import call
from web import API, Client

from modulekge.run.folder import RunFolder
from modulekge.run.judgements import (
    Judgement,
    accepted_triples,
    agreement,
    keep_judgements,
    read_judgements,
    standing_judgements,
)
from modulekge.server.http import make_app
from modulekge.server.service import Service


@pytest.fixture
def judged(folder, tmp_path):
    """A copy of the run, which may be written to."""
    return RunFolder(shutil.copytree(folder, tmp_path / "kin"))


def said(verdict, by="ann", tail="bob", probability=0.75, reason=""):
    return Judgement("ada", "parent", tail, verdict, reason, by, probability, "2026-01-02T03:04:05+00:00")


def test_lines_of_many_at_once_are_all_kept_and_a_cut_one_harms_none(judged):
    keep_judgements(judged, [said("accept")])
    with judged.judgements_file.open("a") as file:
        file.write('{"head": "ada", "rel')  # as a crash leaves it
    names = [f"judge {i}" for i in range(40)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda by: keep_judgements(judged, [said("reject", by, reason="x" * 500)] * 3), names))
    found = read_judgements(judged)
    assert len(found) == 1 + 3 * len(names)
    assert {each.by for each in standing_judgements(found)} == {"ann", *names}


def test_the_last_word_counts_and_who_disagrees_is_heard():
    every = [
        said("accept"),
        said("reject"),
        said("accept", tail="cid"),
        said("withdraw", tail="cid"),
        said("accept", tail="dan", probability=0.25),
        said("accept", "bea", tail="eve"),
        said("reject", "ann", tail="eve"),
        said("accept", tail="fay", probability=None),
    ]
    assert accepted_triples(every) == [("ada", "parent", "dan"), ("ada", "parent", "fay")]
    found = agreement(every)
    assert (found.accepted, found.rejected) == (3, 2)
    assert [(part.answers, part.probability, part.true) for part in found.bins] == [
        (1, 0.25, 1.0),
        (3, 0.75, pytest.approx(1 / 3)),
    ]
    assert found.error == pytest.approx((0.75 + 3 * (0.75 - 1 / 3)) / 4)
    assert agreement([]).error is None


def test_over_http_they_are_kept_with_the_probability_and_exported(judged):
    service = Service.open([judged.path], torch.device("cpu"))
    client, url = Client(make_app(service)), f"{API}/kin/judgements"
    link = client.get(f"{API}/kin/links", limit=1).json()["links"][0]
    names = {part: link[part] for part in ("head", "relation", "tail")}
    body = {"judgements": [{**names, "verdict": "accept", "reason": 'a "reason", with signs'}], "by": "ann"}
    (kept,) = client.post(url, body).json()["judgements"]
    assert kept["probability"] == pytest.approx(link["probability"], rel=1e-4)
    assert client.get(url).json()["judgements"] == [kept]
    assert client.get(f"{API}/kin/agreement").json()["accepted"] == 1
    (row,) = csv.DictReader(io.StringIO(client("GET", url, headers={"accept": "text/csv"}).text))
    assert (row["tail"], row["reason"]) == (link["tail"], body["judgements"][0]["reason"])
    assert client("GET", url, headers={"accept": "application/x-ndjson"}).text.count("\n") == 1
    parquet = client("GET", url, headers={"accept": "application/vnd.apache.parquet"})
    assert parquet.content[:4] == b"PAR1"
    wrong = {"judgements": [{**names, "head": "nobody", "verdict": "accept"}]}
    both = client.post(url, {**body, "judgements": wrong["judgements"] + body["judgements"]}).json()
    assert ([kept["head"] for kept in both["judgements"]], both["errors"][1]) == ([names["head"]], None)
    assert both["errors"][0]["field"] == "judgements[0].head"
    assert client.post(url, wrong).json()["field"] == "judgements[0].head"
    secret = Client(make_app(service, token="a-token-of-ours"))
    assert secret.post(url, body).status_code == secret.get(url).status_code == 401
    assert len(read_judgements(judged)) == 2
    service.close()


@pytest.mark.integration
def test_what_was_accepted_is_added_to_the_run(judged, tmp_path):
    keep_judgements(judged, [said("accept", tail="hal"), said("reject", tail="gil")])
    out = tmp_path / "accepted.csv"
    done = call("judgements", str(judged.path), "--accepted", f"--out={out}", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    added = call("add", str(judged.path), str(out), "--out=more", "--json", cwd=tmp_path)
    assert added.returncode == 0, added.stderr
    assert RunFolder(tmp_path / "more").dataset().split_of((0, 0, 7)) == "train"
    shown = call("judgements", str(judged.path), cwd=tmp_path).stdout
    assert "1 accepted, 1 rejected" in shown

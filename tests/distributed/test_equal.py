"""Several processes train what one trains: every row, every loss, every option."""

import json
import sys
from pathlib import Path
from subprocess import run

import pytest
from distributed.job import CASES, outcome

JOB = Path(__file__).with_name("job.py")


@pytest.fixture(scope="session")
def alone():
    return {name: outcome(settings) for name, settings in CASES.items()}


@pytest.fixture(scope="session", params=[(2, 2), (2, 1), (4, 2)], ids="{0[0]} processes, {0[1]} shards".format)
def several(request, tmp_path_factory):
    processes, shards = request.param
    out = tmp_path_factory.mktemp("job") / "found.json"
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    done = run([sys.executable, *launch, JOB, out, str(shards)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(out.read_text())


@pytest.mark.parametrize("case", CASES)
def test_processes_train_what_one_trains(case, alone, several):
    one, many = alone[case], several[case]
    assert many["losses"] == pytest.approx(one["losses"], rel=1e-5)
    assert many["weights"] == pytest.approx(one["weights"], rel=1e-4, abs=1e-2)
    assert many["metrics"] == pytest.approx(one["metrics"], rel=2e-3)

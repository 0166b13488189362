import pytest
import torch
from web import Client

from modulekge import calibrate, evaluate
from modulekge.run.train import train
from modulekge.server.http import make_app
from modulekge.server.service import Service

SETTINGS = {"model.k": 8, "model.scalar_scale": 0.1, "train.epochs": 20, "train.batch": 8}


@pytest.fixture(scope="session")
def folder(tmp_path_factory, family):
    run = train(family, "ModulE-HH", SETTINGS, tmp_path_factory.mktemp("runs") / "kin")
    run.folder.save_report(evaluate(run))
    calibrate(run)
    return run.folder.path


@pytest.fixture(scope="module")
def service(folder):
    service = Service.open([folder, folder], torch.device("cpu"))
    yield service
    service.close()


@pytest.fixture(scope="module")
def client(service):
    return Client(make_app(service))

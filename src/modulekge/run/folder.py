"""A run on disk: settings, graph, weights, epochs, reports. It loads without the data set."""

import json
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor, nn
from torch.optim import Optimizer

from modulekge.config import Config, make_config, read_config, write_config
from modulekge.data.dataset import SPLITS, Dataset
from modulekge.errors import ConfigError, RunError
from modulekge.evaluation.calibration import Calibration
from modulekge.evaluation.report import Report
from modulekge.models.model import Model
from modulekge.models.table import spec_of
from modulekge.run.circumstances import circumstances, training_circumstances
from modulekge.run.files import (
    Part,
    on_cpu,
    parse_json,
    read_json,
    read_tensors,
    unwritable,
    write_file,
    write_tensors,
    write_through,
)
from modulekge.run.graph import TRIPLES, VOCABULARY, graph_files, read_graph
from modulekge.training.average import MEAN
from modulekge.training.finite import finite, not_finite
from modulekge.training.fit import EpochRecord
from modulekge.training.optimize import WHOLE, load_state, state_tensors
from modulekge.typed import typed
from modulekge.workers import ALONE, Workers

SHARED_WEIGHTS = "model.safetensors"
_DIGITS = 18  # of the number of an epoch at most
_STATE = "optimizer:"  # before the names of the optimiser's tensors in a checkpoint


@dataclass(frozen=True)
class RunFolder:
    """The files of a run. Every file is written whole or not at all."""

    path: Path

    @property
    def config_file(self) -> Path:
        """Every setting, defaults included; usable as a recipe."""
        return self.path / "config.toml"

    @property
    def weights(self) -> Path:
        """The model at its best valid MRR; in a folder made to be shared, of the name that others expect."""
        shared = self.path / SHARED_WEIGHTS
        return shared if shared.exists() else self.path / "weights.safetensors"

    @property
    def checkpoint(self) -> Path:
        """The model and its optimiser after the last epoch that was kept."""
        return self.path / "last.safetensors"

    @property
    def epochs(self) -> Path:
        """One JSON object per epoch."""
        return self.path / "epochs.jsonl"

    def report_file(self, split: str) -> Path:
        """The report on a split: report.json for test."""
        return self.path / ("report.json" if split == "test" else f"report-{split}.json")

    @property
    def calibration_file(self) -> Path:
        """What turns scores into probabilities."""
        return self.path / "calibration.json"

    @classmethod
    def create(
        cls,
        path: Path,
        config: Config,
        dataset: Dataset,
        origin: Mapping[str, Any] | None = None,
        start: tuple[Model, Optimizer] | None = None,
        graph: Path | None = None,
    ) -> "RunFolder":
        """Begin a run in a new or empty folder; one that comes of another says so and starts trained.

        Where the files of its graph lie in a folder already, they are moved.
        """
        about = {**circumstances(), **_about(dataset), **(origin or {})}
        files = {
            **({} if graph else graph_files(dataset)),
            "run.json": json.dumps(about, indent=1, ensure_ascii=False).encode(),
            "config.toml": write_config(config).encode(),
        }
        if start:
            files["last.safetensors"] = save(on_cpu(checkpoint_tensors(*start)), {"epoch": "0"})
            if len(dataset.valid):  # else training would never find better ones
                files["weights.safetensors"] = save(on_cpu(start[0].state_dict()))
        try:
            cls.check_free(path)
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(
                dir=path.parent, prefix=".run-", ignore_cleanup_errors=True
            ) as new:
                folder = Path(new) / "run"  # open to whom the umask says, unlike the one around it
                folder.mkdir()
                for name, content in files.items():
                    write_through(folder / name, content)
                if graph:
                    for name in (VOCABULARY, TRIPLES):
                        (graph / name).replace(folder / name)
                folder.replace(path)
        except OSError as error:
            finding = f"{path}: cannot be made ({error.strerror})"
            raise RunError(f"{finding}; free space or choose another --out") from None
        return cls(path)

    @staticmethod
    def check_free(path: Path) -> None:
        """Refuse a place where there is something already, be it a run or not."""
        if (path / "config.toml").exists():
            raise RunError(f"{path}: exists already; 'modulekge resume {path}', or choose another --out")
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise RunError(f"{path}: exists already and is no run; choose another --out")

    @classmethod
    def existing(cls, path: Path) -> "RunFolder":
        """Return the run in a folder that holds one."""
        if not (path / "config.toml").is_file():
            finding = "no config.toml in it" if path.is_dir() else "no such folder"
            raise RunError(f"{path}: not a run folder ({finding}); 'modulekge train' makes one")
        return cls(path)

    def config(self) -> Config:
        """Read the settings."""
        return make_config([read_config(self.config_file)], str(self.config_file))

    def changed(self, settings: Iterable[Mapping[str, Any]]) -> Config:
        """Return the settings with some of the training to come changed; what weights were made for stays."""
        old = self.config()
        new = make_config([asdict(old), *settings], str(self.config_file))
        kept = replace(new.train, optimizer=old.train.optimizer, seed=old.train.seed)
        if new != replace(old, train=kept):
            raise ConfigError(
                f"{self.path}: as a run goes on, only [train] settings can change, but not optimizer or seed"
            )
        return new

    def dataset(self, names: bool = True) -> Dataset:
        """Read the graph the run was trained on; names of entities may stay in their file."""
        return read_graph(self.path, read_json(self.path / "run.json"), names)

    def model(self, config: Config, dataset: Dataset, workers: Workers = ALONE) -> Model:
        """Read the model at its best, or as it was last where no best was kept yet."""
        model = new_model(config, dataset, workers)
        path = self.weights if self.weights.exists() else self.checkpoint
        if not path.exists():
            raise RunError(f"{self.path}: no weights yet; 'modulekge resume {self.path}' trains them")
        tensors, _ = read_tensors(path, _held(model))
        own = {name: value for name, value in tensors.items() if not name.startswith(_STATE)}
        if config.train.average:
            own = {name: tensors.get(f"{_STATE}{name}.{MEAN}", value) for name, value in own.items()}
        _load_weights(model, own, path)
        return model

    def save_weights(self, model: Model) -> None:
        """Keep the model as the best so far; reports on the one before and its calibration are not true."""
        self._drop_reports()
        write_tensors(self.weights, _parts(model, model.state_dict()), workers=model.workers)

    def save_checkpoint(self, model: Model, optimizer: Optimizer, epoch: int) -> None:
        """Keep all that the next epoch depends on, and the model itself where no best one is kept."""
        if not self.weights.exists():
            self._drop_reports()
        tensors = _parts(model, checkpoint_tensors(model, optimizer))
        write_tensors(self.checkpoint, tensors, {"epoch": str(epoch)}, model.workers)

    def restore(self, model: Model, optimizer: Optimizer) -> int:
        """Set model and optimiser to the last checkpoint; return its epoch, 0 without one."""
        if not self.checkpoint.exists():
            if self.weights.exists():
                raise RunError(f"{self.checkpoint}: no such file, so training cannot go on; train a new run")
            return 0  # or a crash came before the first checkpoint
        tensors, metadata = read_tensors(self.checkpoint, _held(model))
        state = {
            key.removeprefix(_STATE): tensors.pop(key) for key in list(tensors) if key.startswith(_STATE)
        }
        _load_weights(model, tensors, self.checkpoint)
        epoch = metadata.get("epoch", "")
        fits = epoch.isdecimal() and len(epoch) <= _DIGITS and load_state(model, optimizer, state)
        if not fits or not_finite(model, optimizer):
            raise RunError(f"{self.checkpoint}: not a checkpoint of this run; train a new run")
        return int(epoch)

    def write_config(self, config: Config) -> None:
        """Write the settings anew."""
        write_file(self.config_file, write_config(config))

    def records(self, until: int | None = None) -> list[EpochRecord]:
        """Read the epochs, in order; a line cut short by a crash is left out."""
        if not self.epochs.exists():
            return []
        records = []
        *lines, _ = self.epochs.read_bytes().split(b"\n")
        for number, line in enumerate(lines, start=1):
            try:
                record = typed(EpochRecord, parse_json(line))
                if record.epoch != number or (record.valid and not record.valid["mrr"] >= 0):
                    raise ValueError
            except (ValueError, KeyError, RecursionError):
                raise RunError(
                    f"{self.epochs}:{number}: not the record of epoch {number}; remove it"
                ) from None
            records.append(record)
        return records if until is None else records[:until]

    def write_records(self, records: list[EpochRecord]) -> None:
        """Write the epochs anew."""
        write_file(self.epochs, "".join(json.dumps(asdict(record)) + "\n" for record in records))

    def add_record(self, record: EpochRecord) -> None:
        """Add an epoch."""
        try:
            write_through(self.epochs, f"{json.dumps(asdict(record))}\n".encode(), "ab")
        except OSError as error:
            raise unwritable(self.epochs, error) from None

    def add_session(self, first_epoch: int, device: torch.device, processes: int) -> None:
        """Say in run.json when, by which command and on what training goes on from an epoch."""
        path = self.path / "run.json"
        known = read_json(path)
        sessions = [
            *known.get("sessions", []),
            {"first_epoch": first_epoch, "processes": processes, **training_circumstances(device)},
        ]
        write_file(path, json.dumps({**known, "sessions": sessions}, indent=1, ensure_ascii=False))

    def report(self, split: str = "test") -> Report | None:
        """Read the report on a split, if the run was evaluated on it."""
        path = self.report_file(split)
        if not path.exists():
            return None
        try:
            return Report.from_fields(read_json(path))
        except ValueError as error:
            finding = f"not a report ({error})"
            raise RunError(f"{path}: {finding}; 'modulekge evaluate {self.path}' makes it anew") from None

    def is_reported(self) -> bool:
        """Whether the report on test is kept, and the calibration where valid facts were held out."""
        validated = any(record.valid for record in self.records())
        return self.report_file("test").exists() and (self.calibration_file.exists() or not validated)

    def _drop_reports(self) -> None:
        for split in SPLITS:
            self.report_file(split).unlink(missing_ok=True)
        self.calibration_file.unlink(missing_ok=True)

    def save_report(self, report: Report) -> Path:
        """Keep a report; return where."""
        path = self.report_file(report.split)
        write_file(path, report.to_json(indent=1) + "\n")
        return path

    def calibration(self) -> Calibration | None:
        """Read the calibration, if the run was calibrated."""
        if not self.calibration_file.exists():
            return None
        try:
            return Calibration.from_fields(read_json(self.calibration_file))
        except ValueError as error:
            finding = f"{self.calibration_file}: not a calibration ({error})"
            raise RunError(f"{finding}; 'modulekge calibrate {self.path}' makes it anew") from None

    def save_calibration(self, calibration: Calibration) -> None:
        """Keep a calibration of the weights that are kept."""
        write_file(self.calibration_file, calibration.to_json() + "\n")


def new_model(config: Config, dataset: Dataset, workers: Workers = ALONE) -> Model:
    """Return an undrawn model of the configured row for a graph."""
    spec, k, tied = spec_of(config.model), config.model.k, config.model.reciprocal == "tied"
    return Model(spec, len(dataset.entities), dataset.n_questions, k, tied, config.model.bias, workers)


def checkpoint_tensors(model: nn.Module, optimizer: Optimizer) -> dict[str, Tensor]:
    """Return the tables of a model and its optimiser's memory."""
    state = {_STATE + key: value for key, value in state_tensors(model, optimizer).items()}
    return {**model.state_dict(), **state}


def _of_entities(key: str) -> bool:
    """Whether a tensor of a checkpoint has a row for each entity."""
    owner, _, quantity = key.removeprefix(_STATE).partition(".")
    return owner.startswith("entity_") and quantity not in WHOLE


def _parts(model: Model, tensors: Mapping[str, Tensor]) -> dict[str, Tensor | Part]:
    """Return tensors with the place of their rows among those of all entities."""
    first, count = model.held.start, model.n_entities
    return {key: Part(x, first, count) if _of_entities(key) and len(x) else x for key, x in tensors.items()}


def _held(model: Model) -> Callable[[str, list[int]], slice | None]:
    """Return which rows of a tensor in a file are the model's: all, where processes hold none apart."""

    def rows(key: str, shape: list[int]) -> slice | None:
        whole = model.workers.shards == 1 or not _of_entities(key) or shape[:1] != [model.n_entities]
        return None if whole else model.held

    return rows


def _about(dataset: Dataset) -> dict[str, Any]:
    return {
        "dataset": dataset.name,
        "fingerprint": dataset.fingerprint,
        "entities": len(dataset.entities),
        "relations": len(dataset.relations),
        "triples": {split: len(dataset[split]) for split in SPLITS},
    }


def _load_weights(model: nn.Module, tensors: dict[str, Tensor], path: Path) -> None:
    expected = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    found = {name: tuple(value.shape) for name, value in tensors.items()}
    for name in sorted({*expected, *found}):
        if expected.get(name) != found.get(name):
            raise RunError(
                f"{path}: {name} is {found.get(name, 'missing')}, config.toml makes it "
                f"{expected.get(name, 'absent')}; the two do not belong together"
            )
        if not (tensors[name].is_floating_point() and finite(tensors[name].float())):
            raise RunError(f"{path}: {name} has weights that are no numbers; train it anew")
    model.load_state_dict(tensors)

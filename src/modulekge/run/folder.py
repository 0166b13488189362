"""A run on disk: settings, graph, weights, epochs, reports. It loads without the data set."""

import json
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from modulekge.config import Config, RerankConfig, make_config, read_config, write_config
from modulekge.data.dataset import SPLITS, Dataset
from modulekge.errors import ConfigError, RunError
from modulekge.evaluation.calibration import Calibration
from modulekge.evaluation.report import Report
from modulekge.json_io import typed
from modulekge.models.embedding import Embedding
from modulekge.models.reranked import Reranked
from modulekge.models.scorer import Scorer
from modulekge.run.checkpoint import (
    new_model,
    read_checkpoint,
    read_offsets,
    read_weights,
    write_checkpoint,
    write_offsets,
    write_weights,
)
from modulekge.run.files import (
    as_text,
    is_text,
    parse_json,
    read_json,
    unwritable,
    write_file,
    write_through,
)
from modulekge.run.graph import graph_files, read_graph
from modulekge.run.provenance import provenance, training_provenance
from modulekge.training.fit import EpochRecord
from modulekge.workers import ALONE, Workers

SHARED_WEIGHTS = "model.safetensors"


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

    @property
    def _read_from(self) -> Path:
        """Where a model is read from: its best weights, or the last ones while there are no best."""
        return self.weights if self.weights.exists() else self.checkpoint

    def report_file(self, split: str) -> Path:
        """The report on a split: report.json for test."""
        return self.path / ("report.json" if split == "test" else f"report-{split}.json")

    @property
    def calibration_file(self) -> Path:
        """What turns scores into probabilities."""
        return self.path / "calibration.json"

    @property
    def summary(self) -> Path:
        """Of a run to share: settings and sizes for other tools."""
        return self.path / "config.json"

    @property
    def offsets_file(self) -> Path:
        """What reranking adds to the scores of candidates, worked out before."""
        return self.path / "rerank.safetensors"

    @classmethod
    def create(
        cls,
        path: Path,
        config: Config,
        dataset: Dataset,
        origin: Mapping[str, Any] | None = None,
        start: tuple[Embedding, Optimizer] | None = None,
    ) -> "RunFolder":
        """Begin a run in a new or empty folder; one that comes of another says so and starts trained."""
        about = {**provenance(), **_about(dataset), **(origin or {})}
        files = {
            **graph_files(dataset),
            "run.json": json.dumps(about, indent=1, ensure_ascii=False).encode(),
            "config.toml": write_config(config).encode(),
        }
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
                if start:
                    write_checkpoint(folder / "last.safetensors", *start, epoch=0)
                    if len(dataset.valid):  # else training would never find better ones
                        write_weights(folder / "weights.safetensors", start[0])
                folder.replace(path)
        except OSError as error:
            with suppress(OSError):
                cls.check_free(path)  # another process was faster
            finding = f"{path}: cannot be made ({error.strerror})"
            raise RunError(f"{finding}; free space or choose another folder") from None
        return cls(path)

    @staticmethod
    def check_free(path: Path) -> None:
        """Refuse a place where there is something already, be it a run or not, and where none can be."""
        if (path.exists() and path.samefile(".")) or not is_text(str(path)):
            raise RunError(f"{as_text(str(path))}: cannot become a run; choose another --out")
        if (path / "config.toml").exists():
            raise RunError(f"{path}: exists already; 'modulekge resume {path}', or choose another --out")
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise RunError(f"{path}: exists already and is no run; choose another --out")

    @classmethod
    def existing(cls, path: Path) -> "RunFolder":
        """Return the run in a folder that holds one."""
        if not (path / "config.toml").is_file():
            finding = (
                "no config.toml in it" if path.is_dir() else "a file" if path.exists() else "no such folder"
            )
            raise RunError(f"{path}: not a run folder ({finding}); 'modulekge train' makes one")
        return cls(path)

    def config(self) -> Config:
        """Read the settings."""
        return make_config([read_config(self.config_file)], str(self.config_file))

    def changed(self, settings: Iterable[Mapping[str, Any]]) -> Config:
        """Return the settings with some of the training to come changed; what weights were made for stays."""
        old = self.config()
        new = make_config([asdict(old), *settings], "settings")
        kept = replace(new.train, optimizer=old.train.optimizer, seed=old.train.seed)
        if new != replace(old, train=kept):
            raise ConfigError(
                f"{self.path}: as a run goes on, only [train] settings can change, but not optimizer or seed"
            )
        return new

    def dataset(self, names: bool = True) -> Dataset:
        """Read the graph the run was trained on; names of entities may stay in their file."""
        return read_graph(self.path, read_json(self.path / "run.json"), names)

    def model(self, config: Config, dataset: Dataset, workers: Workers = ALONE) -> Embedding:
        """Read the model at its best, or as it was last where no best was kept yet."""
        model = new_model(config, dataset, workers)
        path = self._read_from
        if not path.exists():
            raise RunError(f"{self.path}: no weights yet; 'modulekge resume {self.path}' trains them")
        read_weights(path, model, average=config.train.ema > 0)
        self.check_rerank(config.rerank, dataset)
        return model

    def offsets(self, model: Embedding, weights: RerankConfig) -> dict[int, Tensor]:
        """Read what reranking with these weights adds to candidates, as far as it was worked out."""
        return read_offsets(self.offsets_file, model, weights) if self.offsets_file.exists() else {}

    def state(self) -> tuple[int, ...]:
        """Return what changes whenever the settings, or the weights that are read, are written."""
        files = [path.stat() for path in (self.config_file, self._read_from) if path.exists()]
        return tuple(number for file in files for number in (file.st_mtime_ns, file.st_size))

    def save_weights(self, model: Embedding) -> None:
        """Keep the model as the best so far; reports on the one before and its calibration are not true."""
        self._drop_reports()
        write_weights(self.weights, model)

    def save_checkpoint(self, model: Embedding, optimizer: Optimizer, epoch: int) -> None:
        """Keep all that the next epoch depends on, and the model itself where no best one is kept."""
        if not self.weights.exists():
            self._drop_reports()
        write_checkpoint(self.checkpoint, model, optimizer, epoch)

    def restore(self, model: Embedding, optimizer: Optimizer) -> int:
        """Set model and optimiser to the last checkpoint; return its epoch, 0 without one."""
        if not self.checkpoint.exists():
            if self.weights.exists():
                raise RunError(f"{self.checkpoint}: no such file, so training cannot go on; train a new run")
            return 0  # or a crash came before the first checkpoint
        return read_checkpoint(self.checkpoint, model, optimizer)

    def write_config(self, config: Config) -> None:
        """Write the settings anew."""
        write_file(self.config_file, write_config(config))

    def check_rerank(self, weights: RerankConfig, dataset: Dataset) -> None:
        """Refuse weights for which the graph of a run has no facts."""
        if weights.prior and not dataset.facts:
            raise RunError(f"{self.path}: rerank.prior: there are no facts to count; set it to 0")

    def change_rerank(self, config: Config) -> None:
        """Write the settings anew, with other weights of reranking; what was reported is not of these.

        A run to share says its settings to other tools, too.
        """
        summary = read_json(self.summary) if self.summary.exists() else {}
        self._drop_reports()
        self.write_config(config)
        if "settings" in summary:
            summary["settings"] = asdict(config)
            write_file(self.summary, json.dumps(summary, indent=1, ensure_ascii=False))

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
            {"first_epoch": first_epoch, "processes": processes, **training_provenance(device)},
        ]
        write_file(path, json.dumps({**known, "sessions": sessions}, indent=1, ensure_ascii=False))

    def report(self, split: str = "test") -> Report | None:
        """Read the report on a split, if the run was evaluated on it."""
        path = self.report_file(split)
        if not path.exists():
            return None
        remedy = f"'modulekge evaluate {self.path}' makes it anew"
        try:
            return Report.from_fields(read_json(path, remedy))
        except ValueError as error:
            raise RunError(f"{path}: not a report ({error}); {remedy}") from None

    def is_reported(self) -> bool:
        """Whether the report on test is kept, and the calibration where valid facts were held out."""
        validated = any(record.valid for record in self.records())
        return self.report_file("test").exists() and (self.calibration_file.exists() or not validated)

    def _drop_reports(self) -> None:
        for path in (*map(self.report_file, SPLITS), self.calibration_file, self.offsets_file):
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise unwritable(path.parent, error) from None

    def save_report(self, report: Report) -> Path:
        """Keep a report; return where."""
        path = self.report_file(report.split)
        write_file(path, report.to_json(indent=1) + "\n")
        return path

    def calibration(self) -> Calibration | None:
        """Read the calibration, if the run was calibrated."""
        if not self.calibration_file.exists():
            return None
        remedy = f"'modulekge calibrate {self.path}' makes it anew"
        try:
            return Calibration.from_fields(read_json(self.calibration_file, remedy))
        except ValueError as error:
            raise RunError(f"{self.calibration_file}: not a calibration ({error}); {remedy}") from None

    def save_calibration(self, calibration: Calibration) -> None:
        """Keep a calibration of the weights that are kept."""
        write_file(self.calibration_file, calibration.to_json() + "\n")

    def save_offsets(self, scorer: Scorer, model: Embedding) -> None:
        """Keep what reranking adds to candidates, as far as it was worked out."""
        if isinstance(scorer, Reranked) and scorer.offsets:
            write_offsets(self.offsets_file, scorer, model)


def _about(dataset: Dataset) -> dict[str, Any]:
    return {
        "dataset": dataset.name,
        "fingerprint": dataset.fingerprint,
        "entities": len(dataset.entities),
        "relations": len(dataset.relations),
        "triples": {split: len(dataset[split]) for split in SPLITS},
    }

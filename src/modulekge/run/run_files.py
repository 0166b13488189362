"""The files of a run that need no tensors: settings, epochs, reports."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from errno import ENOTDIR
from os import strerror
from pathlib import Path
from typing import Any, TypeVar

from modulekge.config import Config, make_config, read_config, write_config
from modulekge.data.benchmarks import SPLITS
from modulekge.errors import ConfigError, RunError
from modulekge.evaluation.report import Report
from modulekge.json_io import typed
from modulekge.run.files import as_text, is_text, parse_json, read_json, unwritable, write_file, write_through
from modulekge.training.records import EpochRecord, stalled

SHARED_WEIGHTS = "model.safetensors"
AnyRun = TypeVar("AnyRun", bound="RunFiles")


def cannot_be_made(path: Path, error: OSError) -> RunError:
    """Say why there can be no run at a place."""
    return RunError(f"{path}: cannot be made ({error.strerror}); free space or choose another folder")


@dataclass(frozen=True)
class RunFiles:
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
    def read_from(self) -> Path:
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
    def judgements_file(self) -> Path:
        """What people said of predicted links, a JSON object per line; lines are only added."""
        return self.path / "judgements.jsonl"

    @property
    def map_file(self) -> Path:
        """Where entities lie on the explorer's map."""
        return self.path / "map.safetensors"

    @property
    def summary(self) -> Path:
        """Of a run to share: settings and sizes for other tools."""
        return self.path / "config.json"

    @property
    def mixture_file(self) -> Path:
        """Of a mixture: the weights of its members, by relation."""
        return self.path / "mixture.safetensors"

    @property
    def members(self) -> Path:
        """Of a mixture: the folder of the runs it is made of."""
        return self.path / "members"

    @property
    def offsets_file(self) -> Path:
        """What reranking adds to the scores of candidates, worked out before."""
        return self.path / "rerank.safetensors"

    @staticmethod
    def check_free(path: Path) -> None:
        """Refuse a place where there is something already, be it a run or not, and where none can be."""
        try:
            if (path.exists() and path.samefile(".")) or not is_text(str(path)):
                raise RunError(f"{as_text(str(path))}: cannot become a run; choose another --out")
            if (path / "config.toml").exists():
                goes_on = "" if RunFiles(path).mixture_file.exists() else f"'modulekge resume {path}', or "
                raise RunError(f"{path}: exists already; {goes_on}choose another --out")
            if path.exists() and (not path.is_dir() or any(path.iterdir())):
                raise RunError(f"{path}: exists already and is no run; choose another --out")
            if not next(parent for parent in path.absolute().parents if parent.exists()).is_dir():
                raise NotADirectoryError(ENOTDIR, strerror(ENOTDIR))
        except OSError as error:
            raise cannot_be_made(path, error) from None

    @classmethod
    def existing(cls: type[AnyRun], path: Path) -> AnyRun:
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

    def origin(self, how: str) -> dict[str, Any]:
        """Return what run.json says of where a run comes from: "added" or "mixed"."""
        return dict(read_json(self.path / "run.json").get(how, {}))

    def state(self) -> tuple[int, ...]:
        """Return what changes whenever the settings, or the weights that are read, are written."""
        read = self.config_file, self.read_from, self.mixture_file
        files = [path.stat() for path in read if path.exists()]
        return tuple(number for file in files for number in (file.st_mtime_ns, file.st_size))

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
                if record.epoch != number or not (record.mrr or 0.0) >= 0:
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

    def unfinished(self) -> str:
        """Say how far a training has come that was stopped; nothing once it has ended or was evaluated."""
        train, records = self.config().train, self.records()
        ended = len(records) >= train.epochs or stalled(records, train.patience)
        if ended or not records or not self.checkpoint.exists() or self.report_file("test").exists():
            return ""
        return f"trained for {len(records)} of {train.epochs} epochs"

    def drop_reports(self) -> None:
        """Remove what was said of weights or settings that are gone."""
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

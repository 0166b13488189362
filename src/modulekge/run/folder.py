"""A run on disk: settings, graph, weights, epochs, reports. It loads without the data set."""

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from modulekge.config import Config, RerankConfig, write_config
from modulekge.data.benchmarks import SPLITS
from modulekge.data.dataset import Dataset
from modulekge.errors import RunError
from modulekge.evaluation.calibration import Calibration
from modulekge.models.mixture import Mix
from modulekge.models.model import Model
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
from modulekge.run.files import read_json, write_file, write_through
from modulekge.run.graph import graph_files, read_graph
from modulekge.run.provenance import provenance, training_provenance
from modulekge.run.run_files import RunFiles, cannot_be_made
from modulekge.run.tensors import read_tensors
from modulekge.training.optimizers import state_tensors
from modulekge.workers import ALONE, Workers


@dataclass(frozen=True)
class RunFolder(RunFiles):
    """The files of a run, and what is made of them: its graph, its model, its probabilities."""

    @classmethod
    def create(
        cls,
        path: Path,
        config: Config,
        dataset: Dataset,
        origin: Mapping[str, Any] | None = None,
        start: tuple[Model, Mapping[str, Tensor]] | None = None,
        fill: Callable[[Path], None] = lambda folder: None,
    ) -> "RunFolder":
        """Begin a run in a new or empty folder; one that comes of another says so and starts trained.

        ``start`` is a model and its optimiser's memory. ``fill`` may put more into the folder before others
        see it.
        """
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
                fill(folder)
                folder.replace(path)
        except OSError as error:
            cls.check_free(path)  # another process was faster
            raise cannot_be_made(path, error) from None
        return cls(path)

    def dataset(self, names: bool = True) -> Dataset:
        """Read the graph the run was trained on; names of entities may stay in their file."""
        return read_graph(self.path, read_json(self.path / "run.json"), names)

    def model(self, config: Config, dataset: Dataset, workers: Workers = ALONE) -> Model:
        """Read the model at its best, or as it was last where no best was kept yet."""
        model = new_model(config, dataset, workers)
        path = self.read_from
        if not path.exists():
            raise RunError(f"{self.path}: no weights yet; 'modulekge resume {self.path}' trains them")
        read_weights(path, model, average=config.train.ema > 0)
        self.check_rerank(config.rerank, dataset)
        return model

    def offsets(self, model: Model, weights: RerankConfig) -> dict[int, Tensor]:
        """Read what reranking with these weights adds to candidates, as far as it was worked out."""
        return read_offsets(self.offsets_file, model, weights) if self.offsets_file.exists() else {}

    def mix(self, dataset: Dataset) -> Mix:
        """Read how much the members of a mixture count."""
        tensors, _ = read_tensors(self.mixture_file)
        none = torch.empty(0)
        mix = Mix(*(tensors.get(name, none) for name in ("shares", "scales")))
        shape = dataset.n_relations_with_inverses, len(mix.scales)
        if not (mix.shares.shape == shape and mix.weights.isfinite().all() and (mix.shares >= 0).all()):
            raise RunError(f"{self.mixture_file}: not the weights of this mixture; mix its members again")
        return mix

    def fingerprint(self) -> object:
        """Return that of the graph the run was trained on, as its folder says."""
        return read_json(self.path / "run.json").get("fingerprint")

    def member_folders(self, count: int) -> list[Path]:
        """Return the folders of so many members of a mixture, in their order."""
        return [self.members / str(number) for number in range(1, count + 1)]

    def save_weights(self, model: Model) -> None:
        """Keep the model as the best so far; reports on the one before and its calibration are not true."""
        self.drop_reports()
        write_weights(self.weights, model)

    def save_checkpoint(self, model: Model, optimizer: Optimizer, epoch: int) -> None:
        """Keep all that the next epoch depends on, and the model itself where no best one is kept."""
        if not self.weights.exists():
            self.drop_reports()
        write_checkpoint(self.checkpoint, model, state_tensors(model, optimizer), epoch)

    def restore(self, model: Model, optimizer: Optimizer) -> int:
        """Set model and optimiser to the last checkpoint; return its epoch, 0 without one."""
        if self.mixture_file.exists():
            raise RunError(f"{self.path}: a mixture is not trained; make another, with more --minutes")
        if not self.checkpoint.exists():
            if self.weights.exists():
                raise RunError(f"{self.checkpoint}: no such file, so training cannot go on; train a new run")
            return 0  # or a crash came before the first checkpoint
        return read_checkpoint(self.checkpoint, model, optimizer)

    def check_rerank(self, weights: RerankConfig, dataset: Dataset) -> None:
        """Refuse weights for which the graph of a run has no facts."""
        if weights.prior and not dataset.facts:
            raise RunError(f"{self.path}: rerank.prior: there are no facts to count; set it to 0")

    def change_rerank(self, config: Config) -> None:
        """Write the settings anew, with other weights of reranking; what was reported is not of these.

        A run to share says its settings to other tools, too.
        """
        summary = read_json(self.summary) if self.summary.exists() else {}
        self.drop_reports()
        self.write_config(config)
        if "settings" in summary:
            summary["settings"] = asdict(config)
            write_file(self.summary, json.dumps(summary, indent=1, ensure_ascii=False))

    def add_session(self, first_epoch: int, device: torch.device, processes: int) -> None:
        """Say in run.json when, by which command and on what training goes on from an epoch."""
        path = self.path / "run.json"
        known = read_json(path)
        sessions = [
            *known.get("sessions", []),
            {"first_epoch": first_epoch, "processes": processes, **training_provenance(device)},
        ]
        write_file(path, json.dumps({**known, "sessions": sessions}, indent=1, ensure_ascii=False))

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

    def save_offsets(self, scorer: Scorer, model: Model) -> None:
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

"""What the command line shows: tables of models, graphs, reports, answers; progress of training."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from modulekge.algebra.groups import Chart
from modulekge.algebra.groups import Group as NumberGroup
from modulekge.data.doctor import Finding
from modulekge.data.registry import WORLD, Benchmark
from modulekge.data.survey import Survey
from modulekge.evaluation.ranks import Ranks
from modulekge.evaluation.report import Metrics, RelationReport, Report
from modulekge.models.spec import ModelSpec
from modulekge.run.defaults import Choice
from modulekge.run.needs import Needs
from modulekge.serving.predictor import Answer
from modulekge.studies.render import line_cells
from modulekge.studies.study import Line
from modulekge.studies.tuning import Trial
from modulekge.training.fit import EpochRecord, Glance

_WIDE = 100_000  # columns: a table keeps its width, and a terminal wraps what it has no room for
_FEW = 15  # relations shown unless all are asked for
_FEW_TRIALS = 5


def console(stderr: bool = False) -> Console:
    """Return a console that shows names as they are and cuts nothing off."""
    live = stderr and sys.stderr.isatty()  # where progress is drawn, in the terminal's own width
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, width=None if live else _WIDE)


def _table(*columns: str, title: str = "") -> Table:
    """Text columns on the left; those whose heading starts with a space hold figures, on the right."""
    table = Table(box=None, pad_edge=False, header_style="bold", title=title or None, title_justify="left")
    for column in columns:
        table.add_column(column.strip(), justify="right" if column.startswith(" ") else "left", no_wrap=True)
    return table


def models_table(specs: Iterable[ModelSpec], chart: Chart) -> Table:
    """Table 1 from the rows, with what an entity, a relation and a query cost per block."""
    table = _table(
        "Model", "Scalar S", "Vector V", "Scaling T_S", "Rotation T_V", "Norm", "Score",
        " entity", " relation", " stored", " query",
    )  # fmt: skip
    for spec in specs:
        stored = spec.charted(chart)
        table.add_row(
            spec.name,
            *(word for column, word in spec.words().items() if column != "score"),
            f"N_{spec.algebra.name if spec.vector.trivial else spec.vector.name}/R",
            spec.score.name,
            _per_block(g.freedom for g in spec.entity_groups),
            _per_block(g.freedom for g in spec.relation_groups),
            f"{_widths(stored.entity_groups)} / {_widths(stored.relation_groups)}",
            f"{spec.query_size}k",
        )
    return table


def _per_block(counts: Iterable[int]) -> str:
    return f"{sum(counts)}k"


def _widths(groups: Iterable[NumberGroup]) -> str:
    return _per_block(group.width for group in groups)


def datasets_table(benchmarks: Iterable[Benchmark], places: dict[str, str]) -> Table:
    """The known data sets and where each would be read from."""
    table = _table("Name", " entities", " relations", " train", " valid", " test", "where", "licence")
    for b in benchmarks:
        sizes = (b.entities, b.relations, *b.triples.values())
        table.add_row(b.name, *(f"{size:,}" for size in sizes), places[b.name], _short(b.licence))
    table.add_row(WORLD, *("",) * 5, "in this package", "CC BY 4.0; Unicode License V3")
    return table


def _short(licence: str) -> str:
    return licence.split(" (")[0].split(";")[0]


def survey_view(survey: Survey, all_relations: bool) -> RenderableType:
    """Sizes, what valid and test hold that train does not, leaks, relations."""
    facts = _table(survey.name, " train", " valid", " test")
    for name, counts in (
        ("triples", survey.triples),
        ("self-loops", survey.self_loops),
        ("repeated triples", survey.duplicates),
        ("triples train holds too", survey.shared_with_train),
        ("entities unseen in train", survey.unseen_entities),
        ("triples with such entities", survey.unseen_triples),
    ):
        facts.add_row(name, *(f"{counts[s]:,}" if s in counts else "" for s in survey.triples))
    leaks = _table("test pairs that train joins too", " triples", " of test")
    for name, count in survey.leaks.items():
        leaks.add_row(name, f"{count:,}", f"{count / max(1, survey.triples['test']):.1%}")
    rows = sorted(survey.per_relation, key=lambda r: -r.triples["train"])
    shown = rows if all_relations else rows[:_FEW]
    relations = _table("relation", " train", " valid", " test", " tails/head", " heads/tail", "category")
    for r in shown:
        sizes = [f"{n:,}" for n in r.triples.values()]
        relations.add_row(
            r.relation, *sizes, f"{r.tails_per_head:.2f}", f"{r.heads_per_tail:.2f}", r.category
        )
    head = f"{survey.name}: {survey.entities:,} entities, {survey.relations:,} relations"
    return Group(Text(head, "bold"), "", facts, "", leaks, "", relations, *_more(len(rows) - len(shown)))


def doctor_view(name: str, findings: tuple[Finding, ...], needs: Needs) -> RenderableType:
    """Findings with their advice, the worst first, and what training will need."""
    styles = {"problem": "bold red", "warning": "yellow", "note": "dim"}
    lines = [
        Text.assemble(
            (f"{finding.level}: ", styles[finding.level]), finding.what, (f"; {finding.advice}", "dim")
        )
        for finding in findings
    ]
    counts = [sum(finding.level == level for finding in findings) for level in styles]
    head = f"{name}: {counts[0]} problems, {counts[1]} warnings, {counts[2]} notes"
    memory = f"{needs.memory / 2**30:.2f} GiB of {needs.free / 2**30:.1f} GiB free on {needs.device}"
    if needs.epoch_seconds is None:
        time = "it does not fit: lower model.k or train.batch"
    else:
        most = needs.epoch_seconds * needs.epochs
        time = f"about {needs.epoch_seconds:.2g} s an epoch, {_span(most)} for {needs.epochs} epochs at most"
    return Group(Text(head, "bold"), *lines, Text(f"training needs {memory}; {time}"))


def _span(seconds: float) -> str:
    """Seconds as one would say them."""
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} seconds"


def report_view(report: Report, all_relations: bool) -> RenderableType:
    """The figures, and the protocol without which they mean nothing."""
    head = f"{report.model} on {report.dataset}, {report.split}: {report.triples:,} triples, both sides"
    overall = _table("", " MRR", " Hits@1", " Hits@3", " Hits@10", " MR", "95 % interval of MRR")
    low, high = report.intervals["mrr"]
    overall.add_row("all questions", *_figures(report.both), f"{low:.4f} .. {high:.4f}", style="bold")
    overall.add_row("  tails", *_figures(report.tail))
    overall.add_row("  heads", *_figures(report.head))
    for rule in ("top", "mean"):
        overall.add_row(f"  ties {rule.upper()}", *_figures(report.ties[rule]))
    overall.add_row(f"  without {report.unseen_triples} unseen", *_figures(report.without_unseen))
    rows = sorted(report.relations, key=lambda r: -r.triples)
    shown = rows if all_relations else rows[:_FEW]
    return Group(
        Text(head, "bold"), "", overall, "",
        _parts("category", report.categories), "",
        _parts("relation", shown), *_more(len(rows) - len(shown)), "",
        *(Text(f"{name}: {text}", "dim") for name, text in vars(report.protocol).items()),
    )  # fmt: skip


def _parts(kind: str, parts: Iterable[RelationReport]) -> Table:
    table = _table(kind, " triples", " MRR", " tails", " heads", " Hits@1", " Hits@10")
    for part in parts:
        b = part.both
        values = (b["mrr"], part.tail["mrr"], part.head["mrr"], b["hits@1"], b["hits@10"])
        table.add_row(part.name, f"{part.triples:,}", *map(_figure, values))
    return table


def _figures(metrics: Metrics) -> list[str]:
    return [_figure(metrics[name]) for name in ("mrr", "hits@1", "hits@3", "hits@10")] + [
        f"{metrics['mr']:,.1f}"
    ]


def _figure(value: float) -> str:
    return "-" if value != value else f"{value:.4f}"


def _more(hidden: int) -> list[Text]:
    return [Text(f"... and {hidden} relations more; --all shows them", "dim")] if hidden > 0 else []


def answers_view(question: str, answers: list[Answer]) -> RenderableType:
    """Ranked answers, the known ones marked."""
    table = _table(" ", "answer", " score", "")
    for a in answers:
        name = a.label if a.label == a.name else f"{a.label} ({a.name})"
        held = "" if a.split == "train" else f", held out in {a.split}"
        mark = Text(f"known{held}", "green") if a.known else Text("new", "yellow")
        table.add_row(str(a.rank), name, f"{a.score:.3f}", mark)
    return Group(Text(question, "bold"), table)


def choices_view(choices: Iterable[Choice]) -> RenderableType:
    """What rules chose and why."""
    table = _table("chosen by rule; --set changes it", " ", "because")
    for choice in choices:
        table.add_row(choice.key, str(choice.value), choice.reason)
    return table


def study_table(lines: Iterable[Line]) -> Table:
    """The figures of a study beside the paper's."""
    table = _table(
        "data", "model", "what", " paper", " ours", "95 % interval", "over", " difference", "verdict"
    )
    for line in lines:
        table.add_row(*line_cells(line)[:-1])
    return table


def trials_table(trials: list[Trial]) -> Table:
    """The best trials of a search, with what was searched."""
    keys = list(trials[0].settings) if trials else []
    table = _table(" trial", " valid MRR", " epochs", *keys)
    for trial in trials[:_FEW_TRIALS]:
        values = (_searched(trial.settings[key]) for key in keys)
        table.add_row(str(trial.number), _figure(trial.mrr or 0.0), str(trial.epoch), *values)
    return table


def _searched(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


class TuningDisplay:
    """A line for each trial at its end; on a terminal also a live one of the trial under way."""

    def __init__(self, trials: int) -> None:
        self.progress = Progress(
            TextColumn("{task.completed:.0f} of {task.total:.0f} trials"),
            BarColumn(bar_width=24),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            console=console(stderr=True),
            disable=not sys.stderr.isatty(),
        )
        self.task: TaskID = self.progress.add_task("", total=trials)

    def __enter__(self) -> "TuningDisplay":
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def show(self, event: Trial, finished: int, ranking: list[Trial]) -> None:
        """Bring the line up to date, and say how a trial ended."""
        best = (
            f"best {_figure(ranking[0].mrr or 0.0)} (trial {ranking[0].number})" if ranking else "no best yet"
        )
        mrr = "-" if event.mrr is None else _figure(event.mrr)
        now = f"trial {event.number}: epoch {event.epoch}, valid MRR {mrr}"
        self.progress.update(self.task, completed=finished, description=f"{now}; {best}")
        if event.state != "running":
            words = ", ".join(f"{key} = {_searched(value)}" for key, value in event.settings.items())
            end = f" ({event.error})" if event.error else ""
            self.progress.console.print(f"{now}, {event.state}{end}; {best}; {words}")


class TrainingDisplay:
    """A live line on a terminal: epoch, loss, speed, valid MRR, time left. Nothing elsewhere."""

    def __init__(self, epochs: int, first_epoch: int) -> None:
        self.progress = Progress(
            TextColumn("epoch {task.fields[epoch]}/{task.total:.0f}"),
            BarColumn(bar_width=24),
            TextColumn("loss {task.fields[loss]}"),
            TextColumn("{task.fields[speed]} triples/s"),
            TextColumn("valid MRR {task.fields[mrr]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=console(stderr=True),
            disable=not sys.stderr.isatty(),
            speed_estimate_period=600,
        )
        self.task: TaskID = self.progress.add_task(
            "", total=epochs, completed=first_epoch - 1, epoch=first_epoch, loss="-", speed="-", mrr="-"
        )

    def __enter__(self) -> "TrainingDisplay":
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def show(self, event: Glance | EpochRecord) -> None:
        """Bring the line up to date."""
        if isinstance(event, Glance):
            done = event.epoch - 1 + event.done / event.questions
            self.progress.update(self.task, completed=done, epoch=event.epoch)
            return
        fields = {"loss": f"{event.loss:.4f}", "speed": f"{event.triples_per_second:,.0f}"}
        if event.valid:
            fields["mrr"] = f"{event.valid['mrr']:.4f}"
        self.progress.update(self.task, completed=event.epoch, epoch=event.epoch, **fields)  # type: ignore[arg-type]


@contextmanager
def ranking_display(questions: int) -> Iterator["RankingDisplay"]:
    """A bar on a terminal while questions are ranked. Nothing elsewhere."""
    with Progress(console=console(stderr=True), disable=not sys.stderr.isatty(), transient=True) as progress:
        yield RankingDisplay(progress, progress.add_task("ranking", total=questions))


class RankingDisplay:
    """Passes batches of ranks through and counts them."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self.progress, self.task = progress, task

    def __call__(self, batches: Iterator[Ranks]) -> Iterator[Ranks]:
        """Yield the batches as they come."""
        for ranks in batches:
            self.progress.update(self.task, advance=len(ranks.above))
            yield ranks

"""Rows of new entities and relations, fitted to a model whose other rows stay as they are."""

import torch
from jaxtyping import Int
from torch import Tensor, nn

from modulekge.config import Config
from modulekge.machine import repeatable
from modulekge.models.embedding import Embedding
from modulekge.shapes import Ids
from modulekge.training.losses import LOSSES, Answers, average
from modulekge.training.questions import Draw, Questions, answers_of
from modulekge.training.step import asked

_EPSILON = 1e-10
_MOST_OLD, _DRAWN_OLD = 8192, 4096  # old entities up to which all are scored, and how many else


class Fold:
    r"""$\theta_{new} \leftarrow \theta_{new} - \eta \nabla (\mathcal L + \Phi)$, against all entities.

    Old entities are built once, and have no gradients. What the run drew of its candidates is left out: every
    entity is scored, but for those known to be true where the run leaves them out. Of very many old ones,
    softmax takes the answers and some that each step draws.
    """

    def __init__(
        self, model: Embedding, old: Embedding, questions: Questions, config: Config, rate: float
    ) -> None:
        """Fit the entities of ``model`` after those of ``old``, and the relations that ``old`` has not."""
        self._model, self._questions, self._config = model, questions, config
        self._generator = torch.Generator(model.entity_scalar.device)
        self._first = len(old.entity_scalar)
        self._draws = config.loss.kind == "softmax" and config.loss.smoothing == 0 and self._first > _MOST_OLD
        self._relations = [model.relation_scaling, model.relation_rotation]
        with torch.no_grad():
            self._table = model.entities(slice(self._first))
        model.requires_grad_(False)
        for table in self._relations:
            table.requires_grad_()
        rows = (model.entity_scalar, model.entity_vector, model.entity_bias)
        self._rows = [nn.Parameter(table[self._first :].clone()) for table in rows]
        tables = (table for table in (*self._rows, *self._relations) if table.numel())
        self._sums, self._rate = {table: torch.zeros_like(table.data) for table in tables}, rate
        befores, halves = (old.relation_scaling, old.relation_rotation), 1 if model.tied else 2
        for table, before in zip(self._relations, befores, strict=True):  # reciprocals follow all relations
            for part, known in zip(self.sum(table).chunk(halves), before.chunk(halves), strict=True):
                part[: len(known)] = torch.inf  # with which a row does not move

    def sum(self, table: nn.Parameter) -> Tensor:
        """Return the squared gradients of a table so far; of one without numbers, nothing."""
        return self._sums[table] if table.numel() else table.detach()

    def begin(self, epoch: int) -> None:
        """Draw from here on what belongs to this epoch."""
        self._generator.manual_seed((self._config.train.seed << 32) + epoch)

    @repeatable()
    def __call__(self, rows: Ids) -> Tensor:
        """Take one step on some of the questions; return its loss."""
        questions, config = self._questions, self._config
        batch = questions.batch(rows)
        heads, relations, _ = batch.unbind(1)
        answers = answers_of(batch, questions.known, config.loss)
        ids = torch.cat([heads, heads[answers.rows], answers.columns])
        few = self._model.part(len(ids))
        self._gather(ids, few)
        b, m = len(heads), len(answers.rows)
        parts = slice(b), relations, slice(b, b + m), relations[answers.rows], slice(b + m, len(ids))
        queries, rest = asked(few, *parts, config, Draw(self._generator, b, slice(None)))
        columns = self._columns(answers)
        scores = self._scores(queries, columns)
        true = questions.known.of_questions(heads, relations) if config.loss.candidates != "all" else None
        if columns is not None:
            answers = Answers(answers.rows, torch.searchsorted(columns, answers.columns))
            true = true and _among(columns, *true)
        if true is not None:
            kept = scores[answers.rows, answers.columns]
            scores = scores.index_put(true, scores.new_full((), -torch.inf))
            scores = scores.index_put((answers.rows, answers.columns), kept)
        weights = None if questions.weights is None else questions.weights[rows]
        value = average(LOSSES[config.loss.kind](scores, answers, config.loss), weights) + rest
        value.backward()
        self._add(ids, few)
        self._step()
        return value.detach()

    @torch.no_grad()
    def _step(self) -> None:
        r"""$G \mathrel{+}= g^2$, $x \mathrel{-}= \eta\, g / (\sqrt G + \epsilon)$: Adagrad."""
        for table, total in self._sums.items():
            if table.grad is not None:
                total.addcmul_(table.grad, table.grad)
                table.addcdiv_(table.grad, total.sqrt().add_(_EPSILON), value=-self._rate)
                table.grad = None

    def finish(self) -> dict[str, Tensor]:
        """Put the rows into the model; return the squared gradients of every table, 0 where nothing moved."""
        model, names = self._model, ("entity_scalar", "entity_vector", "entity_bias")
        sums = {}
        with torch.no_grad():
            for name, rows in zip(names, self._rows, strict=True):
                table = model.get_parameter(name)
                table[self._first :] = rows
                sums[name] = torch.zeros_like(table)
                sums[name][self._first :] = self.sum(rows)
        for name in ("relation_scaling", "relation_rotation"):
            total = self.sum(model.get_parameter(name))
            sums[name] = total.masked_fill(total.isinf(), 0)
        model.requires_grad_()
        return sums

    def _gather(self, ids: Ids, few: Embedding) -> None:
        """Make a model of as many entities one of these."""
        new, wholes = ids >= self._first, (self._model.entity_scalar, self._model.entity_vector)
        for part, whole, rows in zip(
            (few.entity_scalar, few.entity_vector), wholes, self._rows[:2], strict=True
        ):
            torch.index_select(whole, 0, ids, out=part.detach())
            part.detach()[new] = rows.detach()[ids[new] - self._first]

    def _add(self, ids: Ids, few: Embedding) -> None:
        """Add the gradients by rows of that model to those by the new rows."""
        new = ids >= self._first
        for part, rows in zip((few.entity_scalar, few.entity_vector), self._rows[:2], strict=True):
            if part.grad is not None and rows.numel():
                rows.grad = torch.zeros_like(rows) if rows.grad is None else rows.grad
                rows.grad.index_add_(0, ids[new] - self._first, part.grad[new])

    def _columns(self, answers: Answers) -> Int[Tensor, " columns"] | None:
        """Return which entities are scored, ascending: some old ones and all new ones; None: all."""
        if not self._draws:
            return None
        device = self._table.device
        drawn = torch.randint(self._first, (_DRAWN_OLD,), generator=self._generator, device=device)
        new = torch.arange(self._first, self._model.n_entities, device=device)
        columns: Tensor = torch.cat([drawn, answers.columns, new]).unique()
        return columns

    def _scores(self, queries: Tensor, columns: Int[Tensor, " columns"] | None = None) -> Tensor:
        """Every query against the old entities, then against the new ones; or against some of the old."""
        model, score, (scalar, vector, bias) = self._model, self._model.spec.score, self._rows
        old = slice(self._first) if columns is None else columns[columns < self._first]
        tables = (self._table[old], model.spec.entity(scalar, vector))
        parts = [score.all_pairs(queries, table, model.score_weights) for table in tables if len(table)]
        scores = torch.cat(parts, dim=1)
        if len(model.entity_bias) == 0:
            return scores
        return scores + torch.cat([model.entity_bias[: self._first][old], bias])


def _among(
    columns: Int[Tensor, " columns"], rows: Int[Tensor, " pairs"], tails: Int[Tensor, " pairs"]
) -> tuple[Int[Tensor, " _found"], Int[Tensor, " _found"]]:
    """Return the pairs whose tail is among the columns, each with its column."""
    places = torch.searchsorted(columns, tails).clamp(max=len(columns) - 1)
    found = columns[places] == tails
    return rows[found], places[found]

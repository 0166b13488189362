"""A step of training: the loss of a batch, its gradients, an update."""

from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F
from torch.optim import Adagrad, Optimizer

from modulekge.config import Config
from modulekge.errors import ConfigError
from modulekge.machine import can_compile, compiled, keep_memory, repeatable
from modulekge.models.embedding import Embedding, Some
from modulekge.shapes import Ids, Queries
from modulekge.training.drawn import drawn_softmax
from modulekge.training.exact import Target, exact
from modulekge.training.losses import LOSSES, Answers, Weights
from modulekge.training.optimizers import matmul_precision
from modulekge.training.plateau import ease
from modulekge.training.questions import Draw, Questions, answers_of, candidate_scores, dropout
from modulekge.training.recorded import Recorded
from modulekge.training.regularizer import regularization
from modulekge.training.tables import PlainTables, RowTables, Tables, gradients_of, tables_of

# Numbers in the tables of entities times steps, from which on compiling pays
_WORTH_COMPILING = {"cpu": 4e9, "cuda": 2e10}


class Step:
    r"""$\theta \leftarrow \theta - \eta \nabla (\mathcal L + \Phi)$ on a batch of the questions.

    On a GPU a step is compiled, recorded once as a graph of kernels and then replayed without the host.
    Where there are several processes, all take each step together and end it with the same loss.
    """

    def __init__(self, model: Embedding, questions: Questions, optimizer: Optimizer, config: Config) -> None:
        loss = config.loss
        self._exact = loss.candidates == "all" and loss.kind in ("softmax", "logistic")
        if model.workers.shards > 1 and loss.candidates == "all" and not self._exact:
            raise ConfigError(
                f'loss.kind = "{loss.kind}" with loss.candidates = "all": needs all scores in one process; '
                'set loss.candidates = "sampled", or train.shards = 1'
            )
        self._model, self._questions, self._optimizer, self._config = model, questions, optimizer, config
        device = self._device = model.entity_scalar.device
        self._generator, self._total = torch.Generator(device), torch.zeros((), device=device)
        if device.type == "cpu":
            keep_memory()
        rows = torch.empty(config.train.batch, dtype=torch.long, device=device)
        own = model.workers.questions(config.train.batch)
        each = torch.arange(own.stop - own.start, device=device)
        # Where candidates are drawn for all questions of a batch, a CPU touches their rows and no others
        self._drawn = (
            loss.candidates == "shared"
            and loss.kind == "softmax"
            and isinstance(optimizer, Adagrad)
            and device.type == "cpu"
            and model.workers.size == 1
        )
        more = loss.negatives if self._drawn else 0
        self._asked = self._part(2 * len(each) + more, len(each), bias=self._drawn)
        self._share = model.entity_scalar.new_full(rows.shape, 1 / config.train.batch)
        self._even = Target.of(Answers(each, each), self._share[own], model.n_entities, loss)
        self._one = self._share.new_ones(())
        # Where questions have any number of answers, no two steps are alike; what processes tell each other
        # is not recorded
        alike = config.loss.targets == "one"
        self._recorded = Recorded(self._take, (rows,), self._generator, alike and model.workers.size == 1)
        steps = config.train.epochs * len(questions.triples) // config.train.batch
        numbers = model.entity_scalar.numel() + model.entity_vector.numel()
        worth = steps * numbers >= _WORTH_COMPILING[device.type]
        self._compile = alike and worth and can_compile(device.type)
        self._build = compiled(model.spec.entity) if self._compile else None
        matmul = config.train.precision
        self._tables: Tables
        if self._exact:
            self._loss, self._tables = self._exact_loss, tables_of(model, optimizer, self._build, matmul)
        elif self._drawn:
            self._loss, self._tables = self._drawn_loss, RowTables(model, optimizer)
        else:
            self._loss, self._tables = self._plain_loss, PlainTables(model)

    def begin(self, epoch: int) -> None:
        """Draw from here on what belongs to this epoch."""
        self._generator.manual_seed((self._config.train.seed << 32) + epoch)
        self._total.zero_()
        model = self._model
        everywhere = (model.relation_scaling, model.relation_rotation, model.score_weights)
        model.workers.broadcast_([table.detach() for table in everywhere if table.numel()])
        self._tables.begin()
        self._recorded.begin()

    def __call__(self, rows: Ids) -> None:
        """Take one step, or on a GPU have it taken soon."""
        self._recorded(rows)

    def mean(self, count: int) -> float:
        """Wait for the steps since :meth:`begin` and return their mean loss over so many questions."""
        self._recorded.wait()
        return float(self._total) / count

    @repeatable()
    def _take(self, rows: Ids) -> None:
        workers = self._model.workers
        own = workers.questions(len(rows))
        self._optimizer.zero_grad()
        if own.start == own.stop:  # there are fewer than copies
            value = self._total.new_zeros(())
        else:
            with matmul_precision(self._config.train.precision, self._device):
                batch, draw = self._questions.batch(rows[own]), Draw(self._generator, len(rows), own)
                true = self._answers(batch)
                value = self._loss(batch, true, self._shares(rows)[own], self._own_part(rows, true), draw)
        if workers.copies > 1:
            gradients = [gradients_of(p) for group in self._optimizer.param_groups for p in group["params"]]
            workers.sum_copies_([value, *gradients])
        self._optimizer.step()
        if self._config.train.plateau_steps:
            ease(self._optimizer, value, self._config.train)
        self._total.add_(value, alpha=len(rows))

    def _answers(self, batch: Tensor) -> Answers:
        if self._config.loss.targets == "one" and len(batch) == len(self._even.rows):
            return Answers(self._even.rows, batch[:, 2])
        return answers_of(batch, self._questions.known, self._config.loss)

    def _shares(self, rows: Ids) -> Weights:
        """Return what each question of a batch counts; in all it is 1."""
        weights = self._questions.weights
        if weights is not None:
            weights = weights[rows]
            return weights / weights.sum()
        return (
            self._share if len(rows) == len(self._share) else self._share.new_full(rows.shape, 1 / len(rows))
        )

    def _own_part(self, rows: Ids, true: Answers) -> float | Tensor | None:
        """Return which part of the answers of a batch belongs to the questions asked here; None: all."""
        if self._model.workers.copies == 1:
            return None
        if self._config.loss.targets == "one":
            return len(true.rows) / len(rows)
        heads, relations, _ = self._questions.batch(rows).unbind(1)
        return len(true.rows) / self._questions.known.counts(heads, relations).sum()

    def _plain_loss(
        self, batch: Tensor, true: Answers, share: Weights, part: float | Tensor | None, draw: Draw
    ) -> Float[Tensor, ""]:
        """Return the loss of a batch with its candidates; its gradients come as autograd makes them."""
        heads, relations, tails = batch.unbind(1)
        model, config, b = self._model, self._config, len(batch)
        drawn, truth = heads[:0], None
        if config.loss.candidates != "all":
            drawn = draw.entities(model.n_entities, config.loss.negatives, config.loss)
            truth = self._questions.known.among(heads, relations, drawn.expand(b, -1))
        sent = (tails, drawn.flatten()) if model.workers.shards > 1 else ()
        ids, few, queries, rest = self._ask(batch, true, draw, sent)
        if sent:  # rows of others, and numbered in the order of asking
            first, places = len(ids) - b - drawn.numel(), torch.arange(len(ids), device=ids.device)
            model, tails, drawn = few, places[first : first + b], places[first + b :].view_as(drawn)
        if truth is None:
            scores, answers = model.scores(queries, model.entities(build=self._build)), true
        else:
            scores, answers = candidate_scores(model, queries, tails, drawn, truth, self._build)
        scores = scores.float() if scores.dtype == torch.bfloat16 else scores
        rest = rest if part is None else part * rest
        value = (share * LOSSES[config.loss.kind](scores, answers, config.loss)).sum() + rest
        value.backward()
        self._tables.add(ids, relations, few)
        return value.detach()

    def _drawn_loss(
        self, batch: Tensor, true: Answers, share: Weights, part: float | Tensor | None, draw: Draw
    ) -> Float[Tensor, ""]:
        """Return the loss of a batch against candidates drawn for all of it."""
        loss = self._config.loss
        (drawn,) = draw.entities(self._model.n_entities, loss.negatives, loss)
        known = self._questions.known.among_shared(batch[:, 0], batch[:, 1], drawn)
        ids, few, queries, rest = self._ask(batch, true, draw, (drawn,))
        value, gradients = drawn_softmax(few, queries, known, share, self._build)
        self._back(queries, gradients, rest)
        self._tables.add(ids, batch[:, 1], few)
        return value + rest.detach()

    def _exact_loss(
        self, batch: Tensor, true: Answers, share: Weights, part: float | Tensor | None, draw: Draw
    ) -> Float[Tensor, ""]:
        """Return the loss of a batch against all entities."""
        ids, few, queries, rest = self._ask(batch, true, draw)
        rest = rest if part is None else part * rest
        target = replace(self._target(true, share), columns=ids[len(batch) :])
        value, gradients = exact(self._model, queries, target, self._config.loss.kind, self._tables)
        self._back(queries, gradients, rest)
        self._tables.add(ids, batch[:, 1], few)
        total: Tensor = value + rest.detach()
        return total

    def _back(self, queries: Queries, gradients: Queries, rest: Tensor) -> None:
        """Bring gradients by the queries, and those of what is added to the loss, back to the rows asked."""
        roots = [root for root in ((queries, gradients), (rest, self._one)) if root[0].requires_grad]
        torch.autograd.backward([root for root, _ in roots], [gradient for _, gradient in roots])

    def _ask(
        self, batch: Tensor, true: Answers, draw: Draw, sent: tuple[Tensor, ...] = ()
    ) -> tuple[Int[Tensor, " entities"], Embedding, Queries, Float[Tensor, ""]]:
        """Return the entities of a batch, a model of these few and its relations, and what that is asked.

        So their gradients are added to those of the whole tables, and no second whole table is made for them.
        """
        heads, relations, _ = batch.unbind(1)
        config, b = self._config, len(batch)
        ids = torch.cat([heads, true.columns, *sent])
        usual = len(ids) == len(self._asked.entity_scalar)
        few = self._asked if usual else self._part(len(ids), b, bias=bool(sent))
        moves = self._tables.gather(ids, relations, few)
        ask = compiled(asked, dynamic=False) if self._compile and usual else asked
        rows: Some = slice(b) if config.loss.targets == "one" else true.rows
        answered = rows if isinstance(moves, slice) else moves[rows]
        tails = slice(b, b + len(true.columns))
        return ids, few, *ask(few, slice(b), moves, rows, answered, tails, config, draw)

    def _part(self, entities: int, relations: int, bias: bool = False) -> Embedding:
        """Return a model for what a batch asks; to tell which relation it is takes all of them."""
        return self._model.part(entities, 0 if self._config.loss.relation_prediction else relations, bias)

    def _target(self, true: Answers, share: Weights) -> Target:
        """Return what a batch asks for; where a question has one answer, little of it is made anew."""
        if self._config.loss.targets == "one" and len(share) == len(self._even.share):
            return replace(self._even, columns=true.columns, share=share)
        return Target.of(true, share, self._model.n_entities, self._config.loss)


def asked(
    model: Embedding,
    heads: Some,
    relations: Some,
    answered_heads: Int[Tensor, " answers"] | slice,
    answered_relations: Int[Tensor, " answers"] | slice,
    tails: Int[Tensor, " answers"] | slice,
    config: Config,
    draw: Draw,
) -> tuple[Queries, Float[Tensor, ""]]:
    r"""Return the queries of a batch, and $\Phi$ with the loss of relations of its triples."""
    queries = dropout(model.queries(heads, relations), config.train.dropout, draw)
    rest = queries.new_zeros(())
    if config.regularizer.weight:
        rest = regularization(model, answered_heads, answered_relations, tails, config.regularizer)
    if config.loss.relation_prediction:
        assert isinstance(answered_relations, Tensor), "rows of some relations do not tell them from others"
        guesses = model.relation_scores(answered_heads, tails)
        rest = rest + config.loss.relation_prediction * F.cross_entropy(guesses, answered_relations)
    return queries, rest

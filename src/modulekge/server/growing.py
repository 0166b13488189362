"""A served run to which facts are added while it answers."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from modulekge.data.addition import enlarge
from modulekge.data.reading import read_facts
from modulekge.run.add import fold_in, free_folder
from modulekge.run.run import Run, load
from modulekge.run.run_files import cannot_be_made
from modulekge.server.service import ServedRun
from modulekge.server.views import Addition

Named = tuple[str, str, str]


@dataclass(eq=False)
class GrowingRun:
    """A run, and the facts that were added to it since it is served.

    The run itself is not changed. All facts together make one new run beside it, as 'modulekge add' would of
    a file of them, and it is this one that answers from then on.
    """

    served: ServedRun
    facts: tuple[Named, ...] = ()
    path: Path | None = None  # of the new run
    _origin: Run = field(init=False, repr=False)
    _adding: asyncio.Lock = field(default_factory=asyncio.Lock, init=False, repr=False)

    def __post_init__(self) -> None:
        self._origin = self.served.run

    async def add(self, fact: Named, new_names: bool) -> Addition:
        """Add a fact; one with a name that the graph does not have only where ``new_names`` are allowed."""
        async with self._adding:
            before = self.served
            if not new_names:
                before.lookup.triple(fact)
            found = enlarge(before.run.dataset, read_facts([fact]))
            facts, path = (*self.facts, fact), self.path or free_folder(self._origin.folder.path)
            self.path = path
            self.served = await asyncio.wrap_future(before.later(lambda: self._grown(before, facts, path)))
            self.facts = facts
            before.finish()
        new, moved = found.entities, self._learns(fact)
        return Addition(path.name, len(facts), new, found.relations, moved, list(found.notes))

    def _learns(self, fact: Named) -> bool:
        """Say whether a model learns from a fact at once: one of paths does, others where a name is new."""
        run, entities, relations = self._origin, self._origin.dataset.entities, self._origin.dataset.relations
        parts = zip((entities, relations, entities), fact, strict=True)
        new = any(not names.meant(name) for names, name in parts)
        return new or any(one.model.spec.along_paths for one in run.members or (run,))

    def _grown(self, before: ServedRun, facts: Sequence[Named], path: Path) -> ServedRun:
        """Make the run that has these facts, in the place of the one that has all but the last."""
        source = load(self._origin.folder.path)
        addition = enlarge(source.dataset, read_facts(facts))
        try:
            with TemporaryDirectory(dir=path.parent, prefix=".add-", ignore_cleanup_errors=True) as scratch:
                new, old = Path(scratch) / "new", Path(scratch) / "old"
                fold_in(source, addition, new)
                if path.exists():
                    path.rename(old)
                new.rename(path)
        except OSError as error:
            raise cannot_be_made(path, error) from None
        run = load(path).on(before.run.model.device)
        return replace(before, name=path.name, run=run).prepare()

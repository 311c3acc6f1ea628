"""Stepwell: what a training measures about itself, on its way to a master.

    import stepwell

    with stepwell.init(trial="resnet50-lr3") as run:
        for batch_index, batch in run.steps(loader):
            with run.scope("train_batch"):
                ...
            run.record("loss", loss)

docs/python.md has the rest.
"""

from __future__ import annotations

from stepwell._load import core
from stepwell._run import Run, init

Scope = core.Scope
Series = core.Series
Steps = core.Steps
__version__: str = core.version

__all__ = ["Run", "Scope", "Series", "Steps", "__version__", "init"]

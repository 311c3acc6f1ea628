"""What mypy knows of a training that uses the package; never run. Each line that is wrong says so, and mypy tells of one that
is not (warn_unused_ignores), as where something were Any."""

from __future__ import annotations

import stepwell
from stepwell.integrations.pytorch import TrainingLoop

loader: list[dict[str, bytes]] = []
evaluation: list[bytes] = []

with stepwell.init(trial="typed") as run:
    for batch_index, batch in run.steps(loader):
        index: int = batch_index
        given: dict[str, bytes] = batch
        wrong_index: str = batch_index  # type: ignore[assignment]
        batch.append(3)  # type: ignore[attr-defined]
    for batch_index, batch in run.steps(loader, epoch=3, batch_in_epoch=1):
        batch.append(3)  # type: ignore[attr-defined]
    count: int = len(run.steps(loader))
    run.steps(7)  # type: ignore[arg-type]

    @run.scope("evaluate")
    def evaluate(number: int) -> str:
        return str(number)

    evaluated: int = evaluate(3)  # type: ignore[assignment]
    with run.scope("validate") as scope:
        name: int = scope.name  # type: ignore[assignment]
    run.record("loss", "text")  # type: ignore[arg-type]

training = TrainingLoop(run)
for batch_index, batch in training.steps(loader, epoch=0):
    batch.append(3)  # type: ignore[attr-defined]
for data in training.evaluate(evaluation):
    data.append(3)  # type: ignore[attr-defined]

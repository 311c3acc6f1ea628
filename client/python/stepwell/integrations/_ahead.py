"""Accelerate's loaders, and so the Trainer's: they fetch a batch ahead of the one that they hand out."""

from __future__ import annotations

from stepwell.integrations._watch import watch_loader, watch_timed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from stepwell.integrations._training import Training
    from stepwell.integrations._watch import Watches


def watch_ahead(loader: Any, training: Training, watches: Watches) -> None:
    """Beside watch_loader(): what such a loader fetches is told with the batch that it is. Of others: nothing."""
    base = getattr(loader, "base_dataloader", None)
    if base is None:
        return
    if hasattr(loader, "_fetch_batches"):  # of one rank for all, which wait for it
        watches.add(watch_loader(base, lambda: None, lambda *_: None, lambda: training.looks_ahead(loader)))
        watches.add(watch_timed(loader, "_fetch_batches", training.ahead_begins,
                                lambda fetched: training.ahead_ends(has_batch(fetched))))  # fmt: skip
    else:
        watches.add(watch_loader(base, training.ahead_begins, lambda _, is_found: training.ahead_ends(is_found),
                                 lambda: training.looks_ahead(loader)))  # fmt: skip


def has_batch(fetched: Any) -> bool:
    """The batch, and what the other ranks are told of it."""
    return fetched is not None and fetched[1][0] is not None

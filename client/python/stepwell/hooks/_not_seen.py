"""What a training did that no hook saw, in words for its end."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepwell.hooks._hook import Hook


def lines(hooks: Iterable[Hook], has_steps: bool, expected: tuple[str, ...]) -> list[str]:
    """`expected` is what each training does. Where nothing was seen at all, its loop is its own."""
    found = list(hooks)
    if not any(hook.is_seen for hook in found):
        return [] if has_steps else ["not seen: a DataLoader, or anything else of torch's that is hooked; "
                                     "run.steps(loader) and run.scope(name) say what is"]  # fmt: skip
    missing = [hook.what for hook in found if hook.what in expected and not hook.is_seen and not hook.trouble]
    said = []
    if not has_steps:
        said.append("not seen: a DataLoader whose batches are trained on; so there are no steps")
        missing = [what for what in missing if what != "the DataLoader"]
    if missing:
        said.append("not seen: " + ", ".join(missing))
    return said


def hidden_lines(hooks: Iterable[Hook]) -> list[str]:
    """A scheduler puts what it found of its optimizer's step into that, where no hook sees it."""
    seen = {hook.what: hook.is_seen for hook in hooks if not hook.trouble}
    if not seen.get("step_lr_schedulers") or seen.get("the optimizer's step", True):
        return []
    return ["not seen: the optimizer's step, for its LR scheduler was made before stepwell.init()"]


def missed_lines(hooks: Iterable[Hook], names: set[str]) -> list[str]:
    """What was left out from the start; `names` are scopes that the run had, of the program's own or an integration's."""
    found = list(hooks)
    if not any(hook.is_seen for hook in found):
        return []
    return [f"not seen: {hook.what}, for {hook.missed}" for hook in found if hook.missed and hook.what not in names]


def given_up_lines(count: int) -> list[str]:
    """Of the GPU's times, which wait until the device has come to them."""
    return [f"not seen: the GPU's time of {count:,} timings, for it had not done them in time"] if count > 0 else []

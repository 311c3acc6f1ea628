"""What a run tells hooks, and asks of them. They are imported where they are wanted alone."""

from __future__ import annotations

import sys

from stepwell._tell import described, warn


def tell(what: str, *of: object) -> None:
    hooks = sys.modules.get("stepwell.hooks")
    if hooks is not None:
        getattr(hooks, what)(*of)


def are_in() -> bool:
    hooks = sys.modules.get("stepwell.hooks")
    return hooks is not None and hooks.are_in()


def install(are_wanted: bool) -> None:
    try:
        from stepwell import hooks

        hooks.install() if are_wanted else hooks.refuse()
    except Exception as error:
        warn(f"stepwell: nothing of torch is hooked: {described(error)}")


def lines_at_end(has_steps: bool, names: set[str]) -> list[str]:
    hooks = sys.modules.get("stepwell.hooks")
    try:
        return [] if hooks is None else [f"stepwell: {line}" for line in hooks.lines_at_end(has_steps, names)]
    except Exception:
        return []

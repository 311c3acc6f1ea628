"""What a run is called and where it is sent, where nobody says so.

The recorder resolves the environment each time it opens; a run that is switched off and on again is to
stay the same trial and attempt, so what would be made up anew is made up here, once.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LOOPBACK = ("127.0.0.1", 7817)
_ANSWER_WAIT_S = 0.5


def _has_job() -> bool:
    """All ranks of the job arrive at the same name by themselves."""
    elastic = os.environ.get("TORCHELASTIC_RUN_ID", "")
    return bool(
        (elastic and elastic != "none") or os.environ.get("SLURM_JOB_ID") or os.environ.get("MASTER_ADDR")
    )


def _named(variable: str) -> str | None:
    """As UTF-8: what is none of it was bytes that no name may have."""
    return os.environ.get(variable, "").encode("utf-8", "replace").decode() or None


def trial_name(given: str | None) -> str | None:
    """None = the recorder takes it from the job."""
    named = given or _named("STEPWELL_TRIAL")
    if named or _has_job():
        return named
    program = os.path.basename(sys.argv[0] if sys.argv else "")
    if program.startswith("-"):  # of python -c
        program = "python"
    if program == "ipykernel_launcher.py":  # each notebook's; Jupyter's server says which one it is
        program = os.path.basename(os.environ.get("JPY_SESSION_NAME", ""))
        program = "notebook" if program in ("", ".ipynb") else program
    ending = next((known for known in (".ipynb", ".py") if program.endswith(known)), "")
    program = program[: len(program) - len(ending)]
    stem = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in program)
    stem = stem.lstrip("-.")  # no option, and no hidden file
    return f"{stem[:64] or 'python'}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{os.urandom(2).hex()}"


def attempt_key(given: str | None) -> str | None:
    """The same for each."""
    named = given or _named("STEPWELL_ATTEMPT_KEY")
    return named if named or _has_job() else os.urandom(16).hex()


def rank(given: int | None) -> int:
    """As the recorder finds it."""
    named = given if given is not None else _named_rank("RANK", "SLURM_PROCID")
    return 0 if named is None else named


def _named_rank(*variables: str) -> int | None:
    """By these of a launcher's."""
    for variable in variables:
        text = os.environ.get(variable, "")
        if text.isascii() and text.isdigit() and len(text) <= 9:
            return int(text)
    return None


def place(rank: int | None, world_size: int | None) -> tuple[int | None, int | None]:
    """What is given; where neither that nor RANK says a rank, what torch.distributed was told, as by mp.spawn's
    functions. torch is asked where the program has imported it, and its group is made. Before SLURM_PROCID, which a batch
    script's program has of that script: each process that it spawns the same."""
    distributed: Any = sys.modules.get("torch.distributed")
    if rank is not None or _named_rank("RANK") is not None or distributed is None:
        return rank, world_size
    try:
        if not distributed.is_available() or not distributed.is_initialized():
            return rank, world_size
        found, count = int(distributed.get_rank()), int(distributed.get_world_size())
    except Exception:  # another torch than those that are known, or one that is being imported
        return rank, world_size
    return (found, count if world_size is None else world_size) if found >= 0 else (rank, world_size)


def agent(given: str | None) -> str | None:
    """The program that the package brings, else the one beside this interpreter, which the recorder looks for beside
    what that is a link to."""
    if given is not None or os.environ.get("STEPWELL_AGENT"):
        return given
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_program", "bin", "stepwell")
    if os.path.exists(own):  # also one that cannot be run: the environment's command would run that, and end, again and again
        return own
    beside = os.path.join(sys.prefix, "bin", "stepwell")
    return beside if os.access(beside, os.X_OK) else None


def built_without(message: str) -> str:
    """What to do where no agent's program is found: else the package brings one."""
    if not message.startswith("no agent: there is no program stepwell"):
        return ""
    return ("; this package was built without its own: cmake --build build/release --target stepwell_alone, then install it anew "
            "(or STEPWELL_WHEEL_PROGRAM=FILE takes another build's; docs/python.md, the first lines)")  # fmt: skip


def uploads_traces() -> bool:
    """Whether the recorder takes STEPWELL_TRACES, and what is recorded there is to be uploaded."""
    return os.environ.get("STEPWELL_TRACES", "").startswith("/") and os.environ.get("STEPWELL_TRACES_UPLOAD") != "0"


def server(given: str | None, spool_dir: str | None, starts_agent: bool) -> str | None:
    """`offline` where nobody says where to send, and no master answers on this machine.

    None = as the agent knows: where one is there already, or somebody else starts it, it has its master.
    """
    if given is not None or os.environ.get("STEPWELL_SERVER"):
        return given
    if os.environ.get("STEPWELL_DISABLED", "0") not in ("", "0"):  # nothing is sent
        return None
    if not starts_agent or os.environ.get("STEPWELL_AGENT") == "off":
        return None
    if os.path.exists(_system_root()):
        return None
    return None if _is_served(spool_root(spool_dir)) or _answers(_LOOPBACK) else "offline"


def spool_root(given: str | None) -> str:
    """Where it records, as far as the recorder takes it."""
    named = given or os.environ.get("STEPWELL_SPOOL_DIR")
    if not named and os.path.exists(_system_root()):
        return os.path.join(_system_root(), f"u{os.geteuid()}")
    return named or os.path.join(os.environ.get("TMPDIR") or "/tmp", f"stepwell-{os.geteuid()}")


def _system_root() -> str:
    return os.environ.get("STEPWELL_SYSTEM_ROOT") or "/run/stepwell"


def named_server(given: str | None) -> str:
    """The master that somebody named, as address; empty where nobody did."""
    named: str = given or os.environ.get("STEPWELL_SERVER") or ""
    return "" if named == "offline" else named


def absent_server(given: str | None) -> str:
    """The address that somebody named, where nobody listens; empty of others. A name is not looked up, which may take
    longer than an exit should."""
    named = named_server(given)
    host, _, port = named.rpartition(":")
    number = "127.0.0.1" if host == "localhost" else host.strip("[]")
    is_number = ":" in number or number.replace(".", "").isdigit()
    return named if is_number and not _answers((number, port)) else ""


def _is_served(root: str) -> bool:
    """Whether an agent holds the lock of the spool's root."""
    import fcntl
    import struct

    layout = "hhqqi"
    wanted = struct.pack(layout, fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
    try:
        with open(os.path.join(root, "f1", "agent.lock"), "rb") as lock:
            held = struct.unpack(layout, fcntl.fcntl(lock, fcntl.F_GETLK, wanted))
    except OSError:
        return False
    return bool(held[0] != fcntl.F_UNLCK)


def _answers(address: tuple[str, int | str]) -> bool:
    import socket

    try:
        socket.create_connection((address[0], int(address[1])), _ANSWER_WAIT_S).close()
    except (OSError, ValueError, OverflowError):
        return False
    return True

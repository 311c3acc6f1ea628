"""The wire contract, by its files: its methods, and how a request of each names a trial.

    for method in methods():
        request = about_trial(method, {"trialId": 7})   # {"trial": {"trialId": 7}}; nothing where it names none
"""

from __future__ import annotations

import functools
import pathlib
import re
from typing import NamedTuple

import wire

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "proto/stepwell/v1"

Json = dict[str, object]


class Method(NamedTuple):
    path: str  # "QueryService/GetTrial"
    request: str  # the name of its type
    streams_in: bool
    streams_out: bool


class Field(NamedTuple):
    type: str
    name: str
    number: int
    is_repeated: bool


@functools.cache
def methods() -> list[Method]:
    found = []
    for path in sorted(FOLDER.glob("*.proto")):
        service = ""
        for line in path.read_text().splitlines():
            if match := re.match(r"service (\w+)", line):
                service = match.group(1)
            if match := re.match(r"\s+rpc (\w+)\(\s*(stream )?(\w+)\s*\) returns \(\s*(stream )?", line):
                name, streams_in, request, streams_out = match.groups()
                found.append(Method(f"{service}/{name}", request, bool(streams_in), bool(streams_out)))
            elif re.match(r"\s+rpc ", line):
                raise ValueError(f"{path}: {line}: not understood")
    return found


@functools.cache
def fields(message: str) -> list[Field]:
    """Of a message, those in its oneofs among them."""
    for path in FOLDER.glob("*.proto"):
        if match := re.search(rf"^message {message} \{{(.*?)^\}}|^message {message} \{{\}}", path.read_text(), re.MULTILINE | re.DOTALL):
            found = re.findall(r"^ +(repeated |optional )?([\w.]+) (\w+) = (\d+)", match.group(1) or "", re.MULTILINE)
            return [Field(kind, name, int(number), word == "repeated ") for word, kind, name, number in found if kind != "reserved"]
    raise ValueError(f"there is no message {message}")


def about_trial(method: Method, trial: Json) -> Json | None:
    """As JSON; `trial` is a TrialRef. Nothing where no field of its own names one, or its number where that is all there is room for."""
    for field in fields(method.request):
        if field.type == "TrialRef":
            return {field.name: [trial] if field.is_repeated else trial}
        if field.type == "CapsPlace":
            return {field.name: {"trial": trial}}
        if field.name == "trial_id":
            return {"trialId": trial["trialId"]} if "trialId" in trial else {}
    return None


def about_trial_bytes(method: Method, trial: bytes) -> bytes | None:
    """The same as bytes, of a method that names one as a TrialRef."""
    for field in fields(method.request):
        if field.type == "TrialRef":
            return wire.field(field.number, trial)
    return None

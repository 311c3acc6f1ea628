"""Many connections without a token, each of which does nothing that a client could not: what they take together."""

from __future__ import annotations

import functools
import socket
import threading
import time

import h2
import wire
from push import begin_calls, push_again, push_calls, reset_calls
from stand import Stand
from table import Answers, attack, patiently

# 256 connections with a hundred calls each take some 300 (docs/security.md); 400 took 477 while nothing bounded them.
CROWD_GROWTH_MIB_MAX = 600
# 289 to 433 where they come for five seconds; it was 4261 while nothing counted their calls.
RESETS_GROWTH_MIB_MAX = 1500
# What the largest message of a call is, and beyond.
HIDDEN_GROWTH_MIB_MAX = 150


@attack("calls of gRPC whose message hardly begins, without a token: a hundred on each of eight hundred connections of four addresses; others are answered meanwhile", "OK, bounded")
def crowd_of_calls(stand: Stand) -> Answers:
    before = stand.resident_mib()
    held, answers = [], []
    for at in range(800):
        try:
            connection = stand.connect(f"127.0.6.{1 + at % 4}")
            begin_calls(connection, 100, b"A" * 2200)
            held.append(connection)
        except OSError:
            pass  # it was not taken
        if at % 80 == 79:
            grown = stand.resident_mib() - before
            reading = patiently(stand, "127.0.6.9", stand.reader)
            answers.append(f"{reading}, " + ("bounded" if grown < CROWD_GROWTH_MIB_MAX * stand.memory_scale else f"{grown:.0f} MiB"))
    for connection in held:
        connection.close()
    stand.await_calm()
    return answers


@attack("nine thousand calls of gRPC that are reset at once, without a token, on each of thirty connections that come again; others are answered meanwhile", "OK, bounded", "HTTP/2 CVE-2023-44487")
def crowd_of_resets(stand: Stand) -> Answers:
    before = stand.resident_mib()
    over = threading.Event()
    resets = reset_calls(9_000)

    def come_again() -> None:
        while not over.is_set():
            try:
                connection = stand.connect("127.0.6.11")
                connection.send(resets)
                connection.socket.close()
            except OSError:
                over.wait(0.05)

    strangers = [threading.Thread(target=come_again) for _ in range(stand.crowd(30))]
    for stranger in strangers:
        stranger.start()
    answers, grown = [], 0.0
    until = time.monotonic() + 4
    while time.monotonic() < until:
        reading = patiently(stand, "127.0.6.9", stand.reader)
        grown = max(grown, stand.resident_mib() - before)
        answers.append(f"{reading}, " + ("bounded" if grown < RESETS_GROWTH_MIB_MAX * stand.memory_scale else f"{grown:.0f} MiB"))
        over.wait(0.1)
    over.set()
    for stranger in strangers:
        stranger.join()
    stand.await_calm()
    # Some were hung up on, of others newcomers were refused.
    log = stand.log()
    return answers if "in so many calls" in log or "too many calls without" in log else ["nobody counted them"]


@attack("a hundred and twenty connections of one address without a token that send half a megabyte each; who has a token sends four at once meanwhile, on a new connection", "OK")
def crowd_beside_a_client(stand: Stand) -> Answers:
    over = threading.Event()
    # As much as the windows of eight calls take, and then no more.
    strangers = [threading.Thread(target=push_again, args=(functools.partial(stand.connect, "127.0.6.7"), 8, 65_536, over)) for _ in range(120)]
    for stranger in strangers:
        stranger.start()
    over.wait(3)
    answers = []
    for _ in range(4):
        answers.append(patiently(stand, "127.0.6.9", stand.admin, "IngestService/WriteChunks", wire.field(1, wire.field(3, wire.field(5, b"x" * 3_900_000)))))
    over.set()
    for stranger in strangers:
        stranger.join()
    stand.await_calm()
    return answers


@attack("connections without a token that hide behind others of the same address and port, to another address of the master", "not taken, bounded")
def twins(stand: Stand) -> Answers:
    before = stand.resident_mib()
    over = threading.Event()
    pushing, answers = [], []
    for at in range(4):
        # Each of another address: one with much that is ended and not yet freed is refused at once.
        source = f"127.0.6.{20 + at}"
        first = connect_from(stand, source, "127.0.0.1", 0)
        port = first.socket.getsockname()[1]
        try:
            connect_from(stand, source, "127.0.0.2", port).read_frame()
            answers.append("taken")
        except OSError:
            answers.append("not taken")
        pushing.append(threading.Thread(target=push_much, args=(first, over)))
        pushing[-1].start()
    until = time.monotonic() + 5
    grown = 0.0
    while time.monotonic() < until:
        grown = max(grown, stand.resident_mib() - before)
        over.wait(0.1)
    over.set()
    for each in pushing:
        each.join()
    return [f"{each}, " + ("bounded" if grown < HIDDEN_GROWTH_MIB_MAX * stand.memory_scale else f"{grown:.0f} MiB") for each in answers]


def connect_from(stand: Stand, source: str, to: str, port: int) -> h2.Connection:
    plain = socket.socket()
    plain.settimeout(10)
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    plain.bind((source, port))
    plain.connect((to, stand.grpc[1]))
    return h2.Connection.over(plain, stand.tls_h2, "127.0.0.1")


def push_much(connection: h2.Connection, over: threading.Event) -> None:
    try:
        push_calls(connection, 100, 7 << 20, over)
    except OSError:
        pass  # the master hung up

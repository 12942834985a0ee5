"""The background loop: one, restartable, and not inherited by a fork."""

from __future__ import annotations

import asyncio

from ooospec_agents.runtime import BackgroundLoop, background, spawn


async def answer() -> int:
    return 42


def test_spawn_runs_on_one_background_loop() -> None:
    assert spawn(answer()).result(10) == 42
    assert background.get() is background.get()


def test_stop_cancels_what_runs() -> None:
    loop = BackgroundLoop()
    future = asyncio.run_coroutine_threadsafe(asyncio.sleep(3600), loop.get())
    first = loop.get()
    loop.stop()
    assert future.cancelled()
    assert first.is_closed()


def test_get_after_stop_starts_anew() -> None:
    loop = BackgroundLoop()
    loop.get()
    loop.stop()
    assert asyncio.run_coroutine_threadsafe(answer(), loop.get()).result(10) == 42
    loop.stop()


def test_stop_before_start_does_nothing() -> None:
    BackgroundLoop().stop()


def test_forget_lets_a_child_start_its_own() -> None:
    loop = BackgroundLoop()
    parent = loop.get()
    loop.forget()
    child = loop.get()
    assert child is not parent
    loop.stop()
    parent.call_soon_threadsafe(parent.stop)

"""Models, sessions, schedulers and streams do not leak memory, threads or files."""

import gc

import sluice
from conftest import START


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def stays_flat(turn, turns, spare):
    """Memory after that many rounds equals that after the first few."""
    for _ in range(10):
        turn()
    gc.collect()
    before = resident()
    for _ in range(turns):
        turn()
    gc.collect()
    assert resident() - before < spare, f"{resident() - before} bytes more after {turns} turns"


def test_models_and_sessions_leave_nothing(turns):
    def turn():
        with sluice.Model("delta-story") as model, model.session(64) as session:
            session.extend([1, 2, 3])
            session.fork().close()
            session.generate([4], max_tokens=2)

    stays_flat(turn, turns, 16 << 20)


def test_schedulers_and_dropped_streams_leave_nothing(model, turns):
    def turn():
        scheduler = sluice.Scheduler(model, parallel=2, context=256)
        stream = scheduler.stream(model.request(START, max_tokens=200))
        next(stream)
        del stream
        scheduler.close()

    stays_flat(turn, turns, 16 << 20)

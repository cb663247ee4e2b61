"""Threads do not survive a fork: using the parent's objects in a child is an error, and children end normally."""

import subprocess
import sys

PROGRAM = """
import os, sys, traceback
import numpy
import sluice
from sluice import ops

model = sluice.Model("delta-story")
session, scheduler = model.session(64), sluice.Scheduler(model, parallel=2, context=64)
stream = model.stream("a", max_tokens=40, ignore_stop_ids=True)
next(stream)
x = numpy.ones((64, 4096), numpy.float32)
expected = ops.rms_norm(x=x, eps=1e-6)

def refused(work):
    try:
        work()
    except sluice.InputError as error:
        assert "fork" in str(error), error
        return
    raise AssertionError("was not refused")

def child():
    assert model.tokenize("Hello.") and model.detokenize([1])
    assert numpy.array_equal(ops.rms_norm(x=x, eps=1e-6), expected)
    for work in (lambda: model.generate("a"), model.session, lambda: model.logits([1]), lambda: model.perplexity("Hello there."),
                 lambda: session.extend([1]), session.snapshot, lambda: scheduler.state, lambda: list(stream),
                 lambda: sluice.Scheduler(model)):
        refused(work)
    with sluice.Model("delta-story") as own:
        assert own.generate("Once upon a time", max_tokens=2, temperature=0).ids
    session.close()
    scheduler.close()
    model.close()

for work in (child, lambda: None):  # the second one leaves everything to the end of the interpreter
    child_id = os.fork()
    if child_id == 0:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        sys.exit(0)
    assert os.waitpid(child_id, 0)[1] == 0
assert len(stream.result.ids) == 40  # the parent is not affected
assert model.generate("a", max_tokens=2).ids
"""


def test_forked_processes():
    ended = subprocess.run([sys.executable, "-W", "ignore", "-c", PROGRAM], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")

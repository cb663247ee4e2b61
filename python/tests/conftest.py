import json
import pathlib
import struct
import subprocess
import sys

import numpy
import pytest

import sluice

START = "Once upon a time"
# The greedy continuation of START by the bundled model, from the C++ engine.
STORY = (", there was a little girl named Lily. She loved to play outside in the sun. One day, she saw a big, red ball in the "
         "park. She wanted to play with it, but")


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="loops of a thousand turns instead of some dozens")


@pytest.fixture(scope="session")
def turns(request):
    """The number of rounds of a loop that checks for leaks in each."""
    return 1000 if request.config.getoption("--long") else 40


@pytest.fixture(scope="session")
def model():
    with sluice.Model("delta-story") as loaded:
        yield loaded


def command_line(*arguments):
    """The output of the C++ program."""
    return subprocess.run([sys.executable, "-m", "sluice", *map(str, arguments)], capture_output=True, text=True, check=True).stdout


def read_tensors(file):
    """The tensors of a safetensors file, F32 and I32."""
    data = pathlib.Path(file).read_bytes()
    size, = struct.unpack_from("<Q", data)
    header, types = json.loads(data[8:8 + size]), {"F32": numpy.float32, "I32": numpy.int32}
    header.pop("__metadata__", None)
    return {name: numpy.frombuffer(data[8 + size:], types[one["dtype"]], numpy.prod(one["shape"], dtype=int), one["data_offsets"][0])
            .reshape(one["shape"]) for name, one in header.items()}

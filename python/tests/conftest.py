import pytest

import sluice

START = "Once upon a time"
# What the bundled model writes to START, always choosing the most likely token: the C++ engine's own text.
STORY = (", there was a little girl named Lily. She loved to play outside in the sun. One day, she saw a big, red ball in the "
         "park. She wanted to play with it, but")


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="loops of a thousand turns instead of some dozens")


@pytest.fixture(scope="session")
def turns(request):
    """How often a loop runs that looks for what is lost in each turn."""
    return 1000 if request.config.getoption("--long") else 40


@pytest.fixture(scope="session")
def model():
    with sluice.Model("delta-story") as loaded:
        yield loaded

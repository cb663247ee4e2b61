import pytest

import sluice

START = "Once upon a time"
# What the bundled model writes to START, always choosing the most likely token: the C++ engine's own text.
STORY = (", there was a little girl named Lily. She loved to play outside in the sun. One day, she saw a big, red ball in the "
         "park. She wanted to play with it, but")


@pytest.fixture(scope="session")
def model():
    with sluice.Model("delta-story") as loaded:
        yield loaded

"""Train mode or eval mode: what a wrong norm asks, and no correct one does."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Every thread has its own, and a call has the mode that was said at its door.
train_mode = ContextVar("train_mode", default=True)


@contextmanager
def in_mode(training: bool) -> Iterator[None]:
    """Let what is called inside compute in train mode, or in eval mode."""
    before = train_mode.set(training)
    try:
        yield
    finally:
        train_mode.reset(before)

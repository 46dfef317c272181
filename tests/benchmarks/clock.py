"""How many times as long? Two programs, one process, one thread, taking turns."""

import statistics
import time

import torch

ROUNDS = 15
ONE_TURN = 0.05  # seconds; shorter turns drown in the steps of the clock


def ratio(ours, theirs):
    """Return the median of processor time of `ours` over that of `theirs`.

    Taking turns lets a busy machine slow down both. Processor time leaves out the
    waiting for other processes, though not the cache they share.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        times = max(1, round(ONE_TURN / _seconds(theirs, warm_up=True)))
        turns = [_turn(ours, theirs, times, i % 2) for i in range(ROUNDS)]
    finally:
        torch.set_num_threads(threads)
    return statistics.median(turns)


def _turn(ours, theirs, times, theirs_first):
    if theirs_first:
        divisor = _seconds(theirs, times)
        return _seconds(ours, times) / divisor
    return _seconds(ours, times) / _seconds(theirs, times)


def _seconds(program, times=1, warm_up=False):
    if warm_up:
        program()
    start = time.process_time()
    for _ in range(times):
        program()
    return time.process_time() - start

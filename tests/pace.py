"""How slow this machine is now: the one measure that our bounds of time are held to.

On a shared machine the same instructions take up to 2.5 times as many seconds, those of
the processor too, and a bound would fail for no reason of ours. So a bound is meant for
a machine that counts to a million in 0.15 seconds, and a slower one gets more.

python -m tests.pace 36 COMMAND    run it, and fail if it takes more processor seconds
"""

import os
import statistics
import subprocess
import sys
import time

USUAL = 0.15


def slowness():
    """Return how many times as long as usual a loop takes now, at least 1."""
    return max(1, statistics.median(_seconds_of_a_million() for _ in range(5)) / USUAL)


def _seconds_of_a_million():
    total, began = 0, time.process_time()
    for i in range(1_000_000):
        total += i * i % 7
    return time.process_time() - began


def main(bound, *command):
    before = slowness()
    subprocess.run(command, check=True)
    used = os.times().children_user + os.times().children_system
    allowed = float(bound) * (before + slowness()) / 2
    print(f"{used:.0f} processor seconds of {allowed:.0f}")
    return used > allowed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""Make stored results anew, called in book: ../.venv/bin/python -m _data NAME...

A name is that of a script in this folder, such as two_dragons. What its `results`
yield, in pairs of a name and an entry, is stored in a JSON file of the same name.
"""

import sys
from importlib import import_module

import torch

from _data.training import store

torch.set_num_threads(1)  # the order of sums, and so the last digit, is fixed
for name in sys.argv[1:] or sys.exit(__doc__):
    table = {}
    for entry, found in import_module(f"_data.{name}").results():
        print(name, entry, found, flush=True)
        table[entry] = found
    store(name, table)

"""Grading a folder of submitted notebooks; `book/grade.py` is the command.

`notebooks` reads what a learner submitted and finds the answers in it, `worker` runs
them in a process of its own, `run` watches this process, and `report` writes the table.
"""

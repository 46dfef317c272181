"""The kernels of notebooks, as forks of one process that has imported the libraries.

NumPy, Matplotlib and PyTorch take longer to import than most notebooks take to run. One
process imports them, and nothing of ours, and becomes the kernel of each notebook.
"""

import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

ADDRESS = "MHA_KERNELS"  # the variable that names the socket
LIBRARIES = (
    "ipykernel.kernelapp", "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_svg", "matplotlib.figure", "numpy.random", "torch",
)  # fmt: skip


class Kernel:
    """What Jupyter expects of a process that it has started."""

    stdin = stdout = stderr = None

    def __init__(self, command, *, cwd, **_):
        asked = cwd, command[command.index("-f") :]
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(os.environ[ADDRESS])
            client.sendall(json.dumps(asked).encode() + b"\n")
            self.pid = int(client.makefile().readline())

    def poll(self):
        """Return None while it runs."""
        return None if Path("/proc", str(self.pid)).exists() else 0

    def wait(self):
        """Return at once: Jupyter has polled until the process was gone."""

    def send_signal(self, number):
        os.kill(self.pid, number)


def start(folder):
    """Start the process from which kernels are forked, and tell others its address."""
    os.environ[ADDRESS] = str(Path(folder, "kernels"))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.environ[ADDRESS])
        server.listen()
        return subprocess.Popen(
            [sys.executable, __file__, str(server.fileno())],
            pass_fds=[server.fileno()],
            stdin=subprocess.PIPE,
            env=os.environ | {"JPY_PARENT_PID": str(os.getpid())},  # ends its kernels
        )


def main(server):
    """Fork a kernel for each line that says in which folder and how."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(fileno=server) as server:
        while True:
            if 0 in select.select([server, 0], [], [])[0]:
                return  # who has started this process is gone
            asked, _ = server.accept()
            folder, arguments = json.loads(asked.makefile().readline())
            for library in LIBRARIES:
                importlib.import_module(library)
            if not (pid := os.fork()):
                break
            os.setpgid(pid, pid)  # Jupyter ends the group of a kernel
            asked.sendall(f"{pid}\n".encode())
    asked.close()
    for stream in 0, 1, 2:  # what a cell prints goes another way
        os.dup2(os.open(os.devnull, os.O_RDWR), stream)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.chdir(folder)
    from ipykernel import kernelapp

    kernelapp.launch_new_instance(argv=arguments)


if __name__ == "__main__":
    del sys.path[0]  # this folder, which no notebook sees
    main(int(sys.argv[1]))

# SPDX-License-Identifier: BSD-3-Clause
"""Worker processes, one thread here for each. A worker that crashes or takes too long is that case's failure; a new one goes on."""
import json
import os
import pathlib
import queue
import select
import signal
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
START_SECONDS = 120


class Worker:
    def __init__(self, log):
        # One OpenMP thread: a team in each of two workers would wait for the other's. The fallback would hide what is missing.
        environment = {k: v for k, v in os.environ.items() if k != "PYTORCH_ENABLE_MPS_FALLBACK"} | {"OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen([sys.executable, "-m", "tests.conformance.worker"], cwd=ROOT, env=environment,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        self.buffer = b""
        if not (self.receive(time.monotonic() + START_SECONDS) or {}).get("ready"):
            raise RuntimeError(f"a worker did not start, see {log.name}")

    def receive(self, deadline):
        """The next message; None when the process ended; TimeoutError at the deadline."""
        out = self.process.stdout.fileno()
        while b"\n" not in self.buffer:
            if not select.select([out], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError
            piece = os.read(out, 1 << 16)
            if not piece:
                return None
            self.buffer += piece
        line, _, self.buffer = self.buffer.partition(b"\n")
        return json.loads(line)

    def run(self, task, seconds):
        """The result of a case, or a failure that says how the worker ended."""
        at = ["samples", 0]
        try:
            self.process.stdin.write((json.dumps(task) + "\n").encode())
            self.process.stdin.flush()
            deadline = time.monotonic() + seconds
            while True:
                message = self.receive(deadline)
                if message is None:
                    code = self.process.wait()
                    return ended(task, at, "crash", signal.Signals(-code).name if code < 0 else f"exit code {code}")
                if "at" not in message:
                    return message
                at = message["at"]
        except TimeoutError:
            return ended(task, at, "timeout", f"no end within {seconds} s")
        except BrokenPipeError:
            return ended(task, at, "crash", "the worker was gone")

    def stop(self):
        self.process.kill()
        self.process.wait()


def ended(task, at, kind, text):
    failure = {"check": at[0], "kind": kind, "sample": at[1], "text": text, "count": 1}
    return {"case": task["case"], "counts": {at[0]: 1}, "double": 0, "failures": [failure], "ended": True}


def run_with_retries(worker, task, seconds, start):
    """Runs a case; after a crash the checks that did not crash are run once more. Returns (result, worker)."""
    failures, checks = [], list(task["checks"])
    while True:
        result = worker.run({**task, "checks": checks}, seconds)
        if not result.get("ended"):
            break
        worker.stop()
        worker = start()
        failures += result["failures"]
        crashed = result["failures"][0]["check"]
        if crashed not in checks or len(checks) == 1:
            break
        checks.remove(crashed)
    result["failures"] = failures + [f for f in result["failures"] if f not in failures]
    for failure in failures:
        result["counts"].setdefault(failure["check"], 1)
    return result, worker


def run_all(tasks, processes, seconds, folder, finished):
    """Calls finished(result, seconds) for each task, from several threads, one at a time."""
    todo, lock, errors = queue.SimpleQueue(), threading.Lock(), []
    for task in tasks:
        todo.put(task)

    def loop(number):
        with open(folder / f"worker-{number}.log", "wb") as log:
            worker = None
            try:
                worker = Worker(log)
                while not errors:
                    try:
                        task = todo.get_nowait()
                    except queue.Empty:
                        break
                    begin = time.monotonic()
                    result, worker = run_with_retries(worker, task, seconds, lambda: Worker(log))
                    with lock:
                        finished(result, time.monotonic() - begin)
            except Exception as error:  # noqa: BLE001 - raised again by the main thread
                errors.append(error)
            finally:
                if worker:
                    worker.stop()

    threads = [threading.Thread(target=loop, args=(n,)) for n in range(processes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]

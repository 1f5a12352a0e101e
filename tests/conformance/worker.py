# SPDX-License-Identifier: BSD-3-Clause
"""A process that runs cases. Reads a JSON line a case, writes a JSON line before each sample ("at") and one with the result.

Whatever an operator prints goes to stderr; a crash ends this process alone, and the last "at" says where.
"""
import json
import os
import sys


def main():
    channel = os.dup(1)
    os.dup2(2, 1)

    def send(message):
        os.write(channel, (json.dumps(message) + "\n").encode())

    from tests.conformance.checks import run_case
    from tests.conformance.exceptions import random_operators

    random = random_operators()
    send({"ready": True})
    for line in sys.stdin:
        task = json.loads(line)
        send(run_case(task["case"], task["checks"], task["limit"], random, lambda check, number: send({"at": [check, number]})))


main()

# SPDX-License-Identifier: BSD-3-Clause
"""No test is left out: what cannot be compared is not generated, so a skip or an expected failure is a failure here."""
import pytest


def refuse(report):
    if report.skipped:
        report.outcome = "failed"
        report.longrepr = f"tests are not skipped or expected to fail; do not generate the case instead: {report.longrepr}"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport():
    outcome = yield
    refuse(outcome.get_result())


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report():
    outcome = yield
    refuse(outcome.get_result())

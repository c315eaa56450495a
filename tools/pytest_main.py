"""Runs the test file that Bazel names with pytest."""

import sys

import pytest


class SkippedFiles:
    """Notes files that skip themselves as a whole, for want of an optional package."""

    def __init__(self) -> None:
        self.any = False

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.any = self.any or report.skipped


def main() -> int:
    skipped = SkippedFiles()
    # Dash brings a plugin for tests of its own, which takes a second to load.
    off = ["-p", "no:cacheprovider", "-p", "no:dash"]
    code = pytest.main(["-q", *off, "-rs", *sys.argv[1:]], plugins=[skipped])
    return 0 if code == pytest.ExitCode.NO_TESTS_COLLECTED and skipped.any else int(code)


if __name__ == "__main__":
    sys.exit(main())

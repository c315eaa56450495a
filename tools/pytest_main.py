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
    code = pytest.main(["-q", "-p", "no:cacheprovider", "-rs", *sys.argv[1:]], plugins=[skipped])
    return 0 if code == pytest.ExitCode.NO_TESTS_COLLECTED and skipped.any else int(code)


if __name__ == "__main__":
    sys.exit(main())

"""Builds the extension module with Bazel, so that `pip install .` just works."""

import os
import pathlib
import shlex
import shutil
import subprocess
import sys

import setuptools
from setuptools.command import build_ext

_TARGET = "//python/plancast:_core.so"


class BazelBuildExt(build_ext.build_ext):
    def run(self) -> None:
        bazel = shlex.split(os.environ.get("BAZEL", "bazel"))
        # PYTHON_BIN_PATH re-runs the @system_python repository rule for the
        # interpreter that pip is using.
        env = {**os.environ, "PYTHON_BIN_PATH": sys.executable}
        subprocess.run([*bazel, "build", "-c", "opt", _TARGET], check=True, env=env)
        info = [*bazel, "info", "-c", "opt", "bazel-bin"]
        bin_dir = subprocess.run(info, check=True, env=env, stdout=subprocess.PIPE, text=True)
        out = pathlib.Path(self.get_ext_fullpath("plancast._core"))
        out.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(f"{bin_dir.stdout.strip()}/python/plancast/_core.so", out)
        out.chmod(0o755)


setuptools.setup(
    cmdclass={"build_ext": BazelBuildExt},
    ext_modules=[setuptools.Extension("plancast._core", sources=[])],
)

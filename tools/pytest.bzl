"""pytest as a Bazel test rule."""

def pytest_test(name, srcs, deps = [], data = [], size = "small", timeout = "moderate", **kwargs):
    """Runs `srcs` under the installed pytest.

    The timeout is longer than that of small tests: an interpreter starts slowly beside other work.
    """
    native.py_test(
        name = name,
        size = size,
        timeout = timeout,
        srcs = srcs + ["//tools:pytest_main.py"],
        args = ["$(rootpath %s)" % src for src in srcs],
        data = srcs + data,
        main = "//tools:pytest_main.py",
        deps = deps,
        **kwargs
    )

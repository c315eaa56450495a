"""pytest as a Bazel test rule."""

def pytest_test(name, srcs, deps = [], data = [], size = "small", **kwargs):
    """Runs `srcs` under the installed pytest."""
    native.py_test(
        name = name,
        size = size,
        srcs = srcs + ["//tools:pytest_main.py"],
        args = ["$(rootpath %s)" % src for src in srcs],
        data = srcs + data,
        main = "//tools:pytest_main.py",
        deps = deps,
        **kwargs
    )

"""Repository rules that wrap libraries installed by the system packager.

`pkg_config_repository` gives installed libraries their upstream Bazel labels
(for example @com_google_absl//absl/status:statusor), so that a BUILD file never
has to know whether a dependency came from Debian or from source.
"""

def _run(rctx, args):
    result = rctx.execute(args)
    if result.return_code != 0:
        fail("%s failed (is the -dev package installed?):\n%s" %
             (" ".join(args), result.stderr))
    return result.stdout.strip()

def _split_label(label):
    package, _, name = label.rpartition(":")
    if not package and "/" in label:
        package, name = label, label.rpartition("/")[2]
    return package, name

def _pkg_config_impl(rctx):
    for name, path in rctx.attr.include_dirs.items():
        rctx.symlink(path, "include_" + name)
    for name, tool in rctx.attr.tools.items():
        path = rctx.which(tool)
        if not path:
            fail("`%s` is not on PATH" % tool)
        rctx.symlink(path, name)

    packages = {"": []}
    for label, modules in rctx.attr.targets.items():
        package, name = _split_label(label)
        libs = ["-Wl,--as-needed"] + [
            opt
            for opt in _run(rctx, ["pkg-config", "--libs"] + modules.split(" ")).split(" ")
            if opt
        ] if modules else []
        libs += rctx.attr.extra_linkopts.get(label, [])
        lines = ["cc_library(", "    name = %r," % name]
        if name in rctx.attr.include_dirs:
            lines.append("    hdrs = glob([\"include_%s/**\"])," % name)
            lines.append("    includes = [\"include_%s\"]," % name)
        lines.append("    linkopts = %r," % libs)
        lines.append(")")
        packages.setdefault(package, []).append("\n".join(lines))
    for package, rules in packages.items():
        header = "package(default_visibility = [\"//visibility:public\"])"
        body = [header] + rules
        if package == "":
            if rctx.attr.tools:
                body.append("exports_files(%r)" % rctx.attr.tools.keys())
            if rctx.attr.build_file_append:
                body.append(rctx.read(rctx.attr.build_file_append))
        path = package + "/BUILD" if package else "BUILD"
        rctx.file(path, "\n\n".join(body) + "\n")

pkg_config_repository = repository_rule(
    implementation = _pkg_config_impl,
    attrs = {
        "build_file_append": attr.label(allow_single_file = True),
        "extra_linkopts": attr.string_list_dict(),
        "include_dirs": attr.string_dict(),
        "targets": attr.string_dict(mandatory = True),
        "tools": attr.string_dict(),
    },
    environ = ["PKG_CONFIG_PATH"],
    local = True,
)

_PYTHON_BUILD = """package(default_visibility = ["//visibility:public"])

load("@bazel_tools//tools/python:toolchain.bzl", "py_runtime_pair")

py_runtime(
    name = "py3_runtime",
    interpreter_path = "{interpreter}",
    python_version = "PY3",
    stub_shebang = "#!{interpreter}",
)

py_runtime_pair(
    name = "runtime_pair",
    py3_runtime = ":py3_runtime",
)

toolchain(
    name = "toolchain",
    toolchain = ":runtime_pair",
    toolchain_type = "@bazel_tools//tools/python:toolchain_type",
)

cc_library(
    name = "headers",
    hdrs = glob(["include/**/*.h"]),
    includes = ["include"],
)
"""

def _system_python_impl(rctx):
    interpreter = rctx.os.environ.get("PYTHON_BIN_PATH")
    if not interpreter:
        # The project's own environment when `make setup` has made one.
        venv = str(rctx.path(Label("//:WORKSPACE")).dirname) + "/.venv/bin/python"
        interpreter = venv if rctx.path(venv).exists else rctx.attr.interpreter
    include = _run(rctx, [
        interpreter,
        "-c",
        "import sysconfig; print(sysconfig.get_path('include'))",
    ])
    rctx.symlink(include, "include")
    rctx.file("BUILD", _PYTHON_BUILD.format(interpreter = interpreter))

system_python_repository = repository_rule(
    implementation = _system_python_impl,
    attrs = {"interpreter": attr.string(default = "/usr/bin/python3")},
    environ = ["PYTHON_BIN_PATH"],
    local = True,
)

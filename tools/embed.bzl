"""Compiles data files into a library, so that presets need no path at run time."""

def embed_text(name, srcs, visibility = None):
    """A cc_library holding the text of `srcs`.

    `embed_text(name = "machine_presets", srcs = glob(["presets/*.textproto"]))`
    in folder cluster gives the header "cluster/machine_presets.h" with

        namespace plancast {
        // In the order of their paths.
        absl::Span<const EmbeddedFile> MachinePresets();
        }

    (see base/embedded_file.h).
    """
    function = "".join([word.capitalize() for word in name.split("_")])
    header = name + ".h"
    source = name + ".cc"
    native.genrule(
        name = name + "_embed",
        srcs = srcs,
        outs = [header, source],
        cmd = " ".join([
            "$(execpath //tools:embed_text)",
            function,
            "'%s'" % native.package_name(),
            "$(location %s)" % header,
            "$(location %s)" % source,
            "$(SRCS)",
        ]),
        tools = ["//tools:embed_text"],
    )
    native.cc_library(
        name = name,
        srcs = [source],
        hdrs = [header],
        visibility = visibility,
        deps = [
            "//base:embedded_file",
            "@com_google_absl//absl/types:span",
        ],
    )

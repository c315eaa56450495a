"""What is known by name, and the one question, for command lines that nobody puts together."""

from __future__ import annotations

# Of rankings and of the question.
FRAMEWORK = {
    "--for": ("torchtitan", "fsdp", "composer", "deepspeed", "megatron", "x"),
    "--pareto": ("",),
    "--launch": ("out.toml", "out/", "nowhere/out.txt", "/dev/full", ".", ""),
}
QUESTION = {key: value for key, value in FRAMEWORK.items() if key != "--pareto"}
RUN = {"--tokens": ("1T", "100", "0", "x"), "--price": ("2", "spot", "-1", "x")}
COMMANDS: dict[str, tuple[tuple[str, ...], tuple[str, ...], dict[str, tuple[str, ...]]]] = {
    "list": (("models", "llama"), (), {"--names": ("",), "--json": ("",)}),
    "show": (("llama3-8b-l2",), (), {"--json": ("",)}),
}

"""Megatron's arguments, from wherever people keep them: words, scripts, namespaces."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from plancast.errors import InputError
from plancast.frameworks.table import Row, Table

_ASSIGNMENT = re.compile(r"(?:export +)?([A-Za-z_]\w*)(\+?)=(.*)", re.DOTALL)
_REFERENCE = re.compile(r"\$\{(\w+)(?:\[[@*]\])?(?::?-([^{}]*))?\}|\$(\w+)|\$\[([^\[\]]*)\]")
_LIST = re.compile(r"\$\{(\w+)(?:\[[@*]\])?\}|\$(\w+)")
_SUM = re.compile(r"[\d+\-*/ ]{1,60}")
_MOST_WORDS = 100_000
_DEEPEST = 20


def split_script(text: str, what: str) -> list[str]:
    """The words of the launch command of a script, variables and arrays put in.

    Assignments, arrays and defaults (`${X:-8}`) are followed; conditions are not: what
    they add is taken. A text of arguments alone is a script, too.

    >>> split_script("TP=8\\nARGS=(--fp16 --tensor-model-parallel-size $TP)\\nrun ${ARGS[@]}", "x")
    ['run', '--fp16', '--tensor-model-parallel-size', '8']
    """
    words = _words(text, what)
    variables: dict[str, list[str]] = {}
    command: list[str] = []
    position = 0
    while position < len(words):
        word = words[position]
        position += 1
        match = _ASSIGNMENT.fullmatch(word)
        after_flag = bool(command) and command[-1].startswith("--") and "$" not in command[-1]
        if match is None or after_flag:
            if word not in "();":
                command.append(word)
            continue
        name, more, value = match.groups()
        values = [value] if value else []
        if not value and position < len(words) and words[position] == "(":
            end = _end_of_array(words, position, what)
            values = words[position + 1 : end]
            position = end + 1
        before = variables.get(name)
        values = [part for value in values for part in _settled(value, name, before)]
        variables[name] = [*((before or []) if more else []), *values]
        if sum(map(len, variables.values())) > _MOST_WORDS:
            raise InputError(f"{what} has more than {_MOST_WORDS:,} words; no script does.")
    expanded = _expand(command, variables, what, 0)
    if not any(word.startswith("--") for word in expanded):
        everything = [word for values in variables.values() for word in values]
        expanded += _expand(everything, variables, what, 0)
    for name in ("WORLD_SIZE",):
        if name in variables and "--nproc-per-node" not in _plain_flags(expanded):
            expanded += ["--world-size", *_expand(variables[name], variables, what, 0)]
    return expanded


def _settled(word: str, name: str, before: list[str] | None) -> list[str]:
    """A word of an assignment to `name`, where that name still means what it meant `before`:
    `X=${X:-8}` is 8, or what X was set to."""
    match = _LIST.fullmatch(word)
    if match is not None and name in (match[1], match[2]):
        return before or []

    def value(match: re.Match[str]) -> str:
        braced, default, bare, _ = match.groups()
        if name not in (braced, bare):
            return match[0]
        return " ".join(before) if before else (default or "").strip("\"'")

    return [_REFERENCE.sub(value, word)]


def _plain_flags(words: Sequence[str]) -> set[str]:
    return {word.partition("=")[0].replace("_", "-") for word in words if word.startswith("--")}


def _words(text: str, what: str) -> list[str]:
    """The words of a script: quotes off, comments gone, sums as `$[...]`."""
    text = re.sub(r"(?m)(^|\s)#.*$", r"\1", text).replace("\r", "")
    text = re.sub(r"\\[ \t]*\n", " ", text)
    text = re.sub(r"\$\(\(([^()\n]{0,200})\)\)", lambda sum_: _bracketed(sum_[1]), text)
    text = re.sub(r"\$\([^()\n]*\)", "$__command__", text)
    lexer = shlex.shlex(text, posix=True, punctuation_chars="();")
    lexer.commenters = ""
    lexer.wordchars += "$@[]{}:%+,^!&|<>"
    try:
        words = list(lexer)
    except ValueError as error:
        raise InputError(f"{what} is no list of arguments: {error}.") from None
    if len(words) > _MOST_WORDS:
        raise InputError(f"{what} has more than {_MOST_WORDS:,} words; no script does.")
    # `"--fp8-format hybrid"` in an array is two words once it is used.
    return [part for word in words for part in (word.split() if _is_phrase(word) else [word])]


def _bracketed(text: str) -> str:
    return f"$[{''.join(text.split())}]"


def _is_phrase(word: str) -> bool:
    return word.lstrip().startswith("--") and any(c.isspace() for c in word)


def _end_of_array(words: list[str], begin: int, what: str) -> int:
    for position in range(begin, len(words)):
        if words[position].startswith(")"):
            return position
    raise InputError(f"{what}: an array `(` is never closed.")


def _expand(
    words: Sequence[str], variables: Mapping[str, list[str]], what: str, depth: int
) -> list[str]:
    if depth > _DEEPEST:
        raise InputError(f"{what}: variables name each other in a circle.")
    result: list[str] = []
    for word in words:
        match = _LIST.fullmatch(word)
        name = (match[1] or match[2]) if match else None
        if name is not None and name in variables:
            parts = [part for value in variables[name] for part in value.split()]
            result += _expand(parts, variables, what, depth + 1)
        else:
            result.append(_substitute(word, variables, 0))
        if len(result) > _MOST_WORDS:
            raise InputError(f"{what} has more than {_MOST_WORDS:,} words; no script does.")
    return result


def _substitute(word: str, variables: Mapping[str, list[str]], depth: int) -> str:
    """A word with its variables put in; those that are not set stay."""
    if "$" not in word or depth > _DEEPEST or len(word) > 10_000:
        return word

    def value(match: re.Match[str]) -> str:
        braced, default, bare, sum_ = match.groups()
        if sum_ is not None:
            return _add_up(sum_, variables, depth)
        name = braced or bare
        if name in variables:
            return _substitute(" ".join(variables[name]), variables, depth + 1)
        if default is not None:
            return _substitute(default.strip("\"'"), variables, depth + 1)
        return match[0]

    return _REFERENCE.sub(value, word)


def _add_up(text: str, variables: Mapping[str, list[str]], depth: int) -> str:
    """Sums, products and quotients of numbers, as in `$((8*4))`."""
    names = re.sub(r"(?<![\w$])([A-Za-z_]\w*)", r"$\1", text.replace("{", "").replace("}", ""))
    numbers = _substitute(names, variables, depth + 1).replace(" ", "")
    if not _SUM.fullmatch(numbers):
        return f"$(({text}))"
    terms = re.findall(r"[+-]?[^+-]+", numbers)
    total = 0
    for term in terms:
        factors = re.findall(r"([*/]?)([+-]?\d{1,12})", term)
        if not factors or "".join(sign + digits for sign, digits in factors) != term:
            return f"$(({text}))"
        product = 1
        for position, (sign, digits) in enumerate(factors):
            if sign == "/":
                if int(digits) == 0:
                    return f"$(({text}))"
                product //= int(digits)
            else:
                product = int(digits) if position == 0 else product * int(digits)
        total += product
    return str(total)


def flags_of(words: Sequence[object], table: Table, what: str) -> tuple[dict[str, Any], list[str]]:
    """Flags and their values, and notes on flags given twice; the last one counts.

    >>> from plancast.frameworks import table
    >>> flags_of(["x.py", "--bf16", "--lr", "1e-4"], table.load("megatron"), "words")
    ({'--bf16': True, '--lr': '1e-4'}, [])
    """
    values: dict[str, list[str]] = {}
    notes: list[str] = []
    current: str | None = None
    for word in words:
        if isinstance(word, int | float) and not isinstance(word, bool):
            word = str(word)
        if not isinstance(word, str):
            raise InputError(f"{what} must be words, and `{str(word)[:40]}` is none.")
        if word.startswith("--") and len(word) > 2:
            current, equals, value = word.partition("=")
            if current not in table.by_key:
                current = current.replace("_", "-")
            if current in values:
                notes.append(f"`{current}` is given twice; the last one counts.")
            values[current] = [value] if equals else []
        elif current is not None:
            values[current].append(word)
    return {flag: _value(table.by_key.get(flag), said) for flag, said in values.items()}, notes


def _value(row: Row | None, said: list[str]) -> Any:
    if row is not None and row.kind == "flag":
        # What follows a switch is the script that is started, or a value of YAML.
        return said[0] if said and said[0].lower() in ("true", "false") else True
    if row is not None and row.kind == "list":
        return said
    if not said:
        return True if row is None else ""
    return said[0]


def flags_of_namespace(values: Mapping[str, Any], table: Table) -> dict[str, Any]:
    """Flags of a parsed namespace, `vars(args)`, or of a YAML file, sections ignored."""
    by_dest = {row.dest: row for row in table.rows.values() if row.dest}
    found: dict[str, Any] = {}

    def walk(mapping: Mapping[str, Any], depth: int) -> None:
        for name, value in mapping.items():
            if isinstance(value, Mapping) and depth < _DEEPEST:
                walk(value, depth + 1)
                continue
            row = by_dest.get(name)
            flag = row.keys[0] if row else "--" + str(name).lstrip("-").replace("_", "-")
            value = _plain(value)
            if row is not None and row.kind == "list" and isinstance(value, list):
                value = [str(part) for part in value]
            if value is False and f"--no-{flag[2:]}" in table.unsupported:
                flag, value = f"--no-{flag[2:]}", True
            if row is not None and row.inverted and isinstance(value, bool):
                value = not value
            if value is None or (value is False and flag not in table.by_key):
                continue
            found[flag] = value

    walk(values, 0)
    return found


def _plain(value: Any) -> Any:
    """A value of a namespace as a command line would have it."""
    if value is None or isinstance(value, bool | int | float | str | list):
        return value
    text = str(value).rsplit(".", 1)[-1]  # torch.bfloat16, AttnBackend.flash
    return {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}.get(text, text)

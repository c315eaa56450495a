"""`plancast completion`."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from plancast.errors import InputError

# Options whose values are names, and what lists them.
_VALUES = {
    "-m": "models",
    "--model": "models",
    "-c": "machines",
    "--machine": "machines",
    "--cluster": "machines",
}
# Commands whose first words are names, and what lists them.
_NOUNS = {
    "plan": ("models", "machines"),
    "show": ("models", "machines", "gpus", "profiles", "ops"),
}
_FRAMEWORKS = ("megatron", "torchtitan", "deepspeed", "fsdp", "composer")
_SHELLS = ("bash", "zsh", "fish")

# Additions end in names of their own: what stands before the last `+` of a word comes before each.
_ADDITIONS = """\
      --profile) words="$({profiles})"
        case "$word" in *+*) words="$({additions} | sed "s|^|${{word%+*}}|")" ;; esac ;;"""
_FISH_PROFILES = """\
function __plancast_profiles
  set -l word (commandline -ct)
  if string match -q '*+*' -- $word
    set -l before (string replace -r '[+][^+]*$' '' -- $word)
    {additions} | string replace -r '^' $before
  else
    {profiles}
  end
end"""
_LISTED = {
    "profiles": "plancast list profiles --names 2>/dev/null | grep -v '^+'",
    "additions": "plancast list profiles + --names 2>/dev/null | grep '^+'",
}


def add_parser(commands: Any) -> None:
    """Declares the subcommand."""
    parser = commands.add_parser(
        "completion",
        help="what a shell needs to complete commands, options and names",
        description="Prints a script for bash, zsh or fish.",
        epilog="Example: echo 'eval \"$(plancast completion bash)\"' >> ~/.bashrc",
    )
    parser.add_argument("shell", metavar="SHELL", help="bash, zsh or fish")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the subcommand."""
    from plancast import arguments

    if options.shell not in _SHELLS:
        raise InputError(f"no shell `{options.shell}`.{arguments.offer(options.shell, _SHELLS)}")
    words = _words(options.parser)
    print(_fish(words) if options.shell == "fish" else _bash(words, options.shell))
    return 0


def _words(parser: argparse.ArgumentParser) -> dict[str, list[str]]:
    """Of each command the words that may follow it: its options, and commands below it."""
    commands = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    found = {}
    for name, command in commands.choices.items():
        words = [o for o in command._option_string_actions if o.startswith("--")]
        for action in command._actions:
            if isinstance(action, argparse._SubParsersAction):
                words = [*action.choices, *words]
        found[name] = [*_below(name), *words]
    return found


def _below(command: str) -> Sequence[str]:
    """Words that a command takes in the first place."""
    from plancast import shipped

    return {"list": list(shipped.KINDS), "completion": _SHELLS}.get(command, ())


def _fixed() -> dict[str, Sequence[str]]:
    """Options whose values are few words."""
    from plancast.arguments import DTYPES

    return {"--for": _FRAMEWORKS, "--dtype": DTYPES}


def _names(kinds: Iterable[str]) -> str:
    """What a shell runs for the names of some kinds."""
    return " ".join(f"$(plancast list {kind} --names 2>/dev/null)" for kind in kinds)


_BASH = """\
_plancast() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}
  local command=${{COMP_WORDS[1]}} words=
  # Machines have a colon, at which bash ends words.
  [ "$before" = ":" ] && return
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="{commands}"
  else
    case "$before" in
{values}
      *) case "$command" in
{options}
      esac ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  [ -n "$words" ] && [ ${{#COMPREPLY[@]}} -gt 0 ] || COMPREPLY=($(compgen -f -- "$word"))
}}
complete -F _plancast plancast"""


def _bash(words: dict[str, list[str]], shell: str) -> str:
    listed: dict[str, list[str]] = {}
    for option, kind in _VALUES.items():
        listed.setdefault(kind, []).append(option)
    values = [_ADDITIONS.format(**_LISTED)]
    for kind, own in listed.items():
        values.append(f'      {"|".join(own)}) words="{_names([kind])}" ;;')
    values += [f'      {option}) words="{" ".join(own)}" ;;' for option, own in _fixed().items()]
    options = [
        f'        {name}) words="{" ".join([*own, _names(_NOUNS.get(name, ()))]).rstrip()}" ;;'
        for name, own in words.items()
    ]
    script = _BASH.format(
        commands=" ".join(words), values="\n".join(values), options="\n".join(options)
    )
    first = "autoload -U +X bashcompinit && bashcompinit\n" if shell == "zsh" else ""
    return first + script


def _fish(words: dict[str, list[str]]) -> str:
    lines = [_FISH_PROFILES.format(**_LISTED)]
    lines.append("complete -c plancast -n __fish_use_subcommand -f -a '" + " ".join(words) + "'")
    for name, own in words.items():
        seen = f"-n '__fish_seen_subcommand_from {name}'"
        below = [word for word in own if not word.startswith("-")]
        if name in _NOUNS:
            kinds = "; ".join(f"plancast list {kind} --names" for kind in _NOUNS[name])
            lines.append(f"complete -c plancast {seen} -f -a '({kinds})'")
        if below:
            lines.append(f"complete -c plancast {seen} -f -a '{' '.join(below)}'")
        for option in own:
            if not option.startswith("--"):
                continue
            kind = _VALUES.get(option)
            short = {"--model": " -s m", "--machine": " -s c"}.get(option, "")
            names = f" -x -a '(plancast list {kind} --names 2>/dev/null)'" if kind else ""
            if option == "--profile":
                names = " -x -a '(__plancast_profiles)'"
            if option in _fixed():
                names = f" -x -a '{' '.join(_fixed()[option])}'"
            lines.append(f"complete -c plancast {seen} -l {option[2:]}{short}{names}")
    return "\n".join(lines)

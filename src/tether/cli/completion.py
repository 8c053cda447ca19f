"""``tether completion``: scripts for shells, made from the parser itself."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field

from tether.cli.parser import SHELLS, build_parser

__all__ = ["script"]

TARGETS = "NAME | FILE.py[:function]"


@dataclass
class Command:
    """What may follow a command."""

    name: str
    title: str
    options: dict[str, str] = field(default_factory=dict)       # options and their help texts
    choices: dict[str, list[str]] = field(default_factory=dict)  # options with fixed values
    files: list[str] = field(default_factory=list)              # options whose value is a file
    words: list[str] = field(default_factory=list)              # possible arguments
    takes_file: bool = False


def script(shell: str) -> str:
    """Return the completion script of a shell.

    Examples
    --------
    >>> from tether.cli.completion import script
    >>> script("fish").splitlines()[0]
    '# completion of tether for fish'
    """
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](_commands())


def _commands() -> list[Command]:
    from tether import gallery  # slow to import
    from tether.cli.studies import titles

    parser = build_parser()
    (commands,) = (part for part in parser._actions
                   if isinstance(part, argparse._SubParsersAction))
    help_of = {part.dest: part.help or "" for part in commands._choices_actions}
    found = []
    for name, sub in commands.choices.items():
        command = Command(name, help_of[name])
        for action in sub._actions:
            for option in action.option_strings:
                command.options[option] = action.help or ""
                if action.choices:
                    command.choices[option] = [str(choice) for choice in action.choices]
                elif action.metavar == "FILE":
                    command.files.append(option)
            if action.metavar == TARGETS:
                command.words, command.takes_file = list(gallery.names()), True
        found.append(command)
    words = {"bench": list(gallery.names()), "studies": list(titles()), "completion": list(SHELLS)}
    for command in found:
        command.words = command.words or words.get(command.name, [])
    return found


def _bash(commands: list[Command]) -> str:
    lines = [
        "# completion of tether for bash", "_tether() {",
        '    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" words=""',
        "    COMPREPLY=()",
        '    if [ "$COMP_CWORD" -eq 1 ]; then',
        f'        words="{" ".join(c.name for c in commands)} --help --version --debug"',
        '        COMPREPLY=($(compgen -W "$words" -- "$word"))', "        return", "    fi",
        '    case "${COMP_WORDS[1]} $before" in',
    ]
    for command in commands:
        for option, choices in command.choices.items():
            lines += [f'        "{command.name} {option}")',
                      f'            COMPREPLY=($(compgen -W "{" ".join(choices)}" -- "$word"))',
                      "            return ;;"]
        for option in command.files:
            lines += [f'        "{command.name} {option}")',
                      '            COMPREPLY=($(compgen -f -- "$word"))', "            return ;;"]
    lines += ["    esac", '    case "${COMP_WORDS[1]}" in']
    for command in commands:
        words = " ".join([*command.words, *command.options])
        lines.append(f'        {command.name}) words="{words}" ;;')
    lines += ["    esac", '    COMPREPLY=($(compgen -W "$words" -- "$word"))']
    targets = "|".join(c.name for c in commands if c.takes_file)
    lines += ['    case "${COMP_WORDS[1]}" in',
              f"        {targets})",
              '            case "$word" in', "                -*) ;;",
              '                *) COMPREPLY+=($(compgen -f -X "!*.py" -- "$word"))',
              '                   COMPREPLY+=($(compgen -d -- "$word")) ;;', "            esac ;;",
              "    esac", "}", "complete -o filenames -F _tether tether"]
    return "\n".join(lines)


def _quoted(text: str) -> str:
    """Quote for zsh and fish: in single quotes, both take everything but the quote literally."""
    return "'" + text.replace("\\", "\\\\").replace("'", "") + "'"


def _zsh(commands: list[Command]) -> str:
    lines = ["#compdef tether", "# completion of tether for zsh", "_tether() {",
             "    local -a commands", "    commands=("]
    lines += [f"        {_quoted(f'{c.name}:{c.title}')}" for c in commands]
    lines += ["    )", "    if (( CURRENT == 2 )); then",
              "        _describe 'command' commands", "        return", "    fi",
              '    local command="$words[2]"', "    shift words", "    (( CURRENT-- ))",
              '    case "$command" in']
    for command in commands:
        lines.append(f"        {command.name})")
        parts = [f"            {_zsh_option(command, option)}" for option in command.options]
        if command.words:
            listed = f"compadd -- {' '.join(command.words)}"
            if command.takes_file:
                listed += '; _files -g "*.py"'
            parts.append(f"            {_quoted(f'*:argument:{{ {listed} }}')}")
        lines.append("            _arguments \\\n    " + " \\\n    ".join(parts) + " ;;")
    lines += ["    esac", "}", 'if [ "$funcstack[1]" = "_tether" ]; then _tether "$@"',
              "else compdef _tether tether; fi"]
    return "\n".join(lines)


def _zsh_option(command: Command, option: str) -> str:
    text = command.options[option].replace("[", "(").replace("]", ")").replace(":", " ")
    value = ""
    if option in command.choices:
        value = f":value:({' '.join(command.choices[option])})"
    elif option in command.files:
        value = ":file:_files"
    return _quoted(f"{option}[{text}]{value}")


def _fish(commands: list[Command]) -> str:
    lines = ["# completion of tether for fish", "complete -c tether -f"]
    lines += [
        f"complete -c tether -n __fish_use_subcommand -a {c.name} -d {_quoted(c.title)}"
        for c in commands
    ]
    for command in commands:
        here = f"complete -c tether -n '__fish_seen_subcommand_from {command.name}'"
        if command.words:
            lines.append(f"{here} -a {_quoted(' '.join(command.words))}")
        if command.takes_file:
            lines.append(f"{here} -a '(__fish_complete_suffix .py)'")
        for option, text in command.options.items():
            flag = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
            line = f"{here} {flag} -d {_quoted(text)}"
            if option in command.choices:
                line += f" -x -a {_quoted(' '.join(command.choices[option]))}"
            elif option in command.files:
                line += " -r -F"
            lines.append(line)
    return "\n".join(lines)

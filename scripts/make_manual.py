#!/usr/bin/env python3
"""Makes the manual pages and the completions of shells out of what the program and tune.sh say of themselves.

usage: make_manual.py PROGRAM TUNE.sh FOLDER
PROGRAM is dstune-mpi. FOLDER gets dstune-mpi.1 and dstune.1 (dstune: the installed name of tune.sh), dstune-mpi.bash
and _dstune-mpi (zsh), each for both commands.
"""

import dataclasses
import pathlib
import re
import subprocess
import sys

# What a value is completed with, by its name in --help; what is no word list is a file.
FOLDERS = ("DIR",)
FREE = ("N", "SIZE", "KEY", "VERSION", "NAME")


@dataclasses.dataclass
class Option:
    names: list  # "--verbose", "-v"
    value: str  # "FILE", "table|json"; "" for none
    text: str

    def words(self):
        """The values, where the option lists them."""
        return [] if not re.fullmatch(r"[a-z0-9]+(\|[a-z0-9]+)+", self.value) else self.value.split("|")


@dataclasses.dataclass
class Help:
    before: list  # lines before the first group
    groups: dict  # title -> options
    after: list  # lines behind the last

    def options(self):
        return [option for options in self.groups.values() for option in options]


def read_option(line):
    """An option and the beginning of its text, of a line of --help; None if it is no such line."""
    found = re.match(r"  (?:(-\w) \[ (--[\w-]+) \]|(--[\w-]+)|(-\w))(?: (?! )(\S+))?(?:\s{2,}(.*)|$)", line)
    if not found:
        return None
    short, long, alone, letter, value, text = found.groups()
    names = [long, short] if long else [alone or letter]
    return Option(names, value or "", text or "")


def read_help(text):
    """Groups begin with a line "Title:", and each of their options with two blanks and a dash."""
    lines = text.splitlines()
    result = Help([], {}, [])
    title, last = None, None
    for number, line in enumerate(lines):
        option = read_option(line)
        heads = re.fullmatch(r"(\S.*):", line) and read_option(lines[number + 1] if number + 1 < len(lines) else "")
        if heads:
            title, last = line[:-1], None
            result.groups[title] = []
        elif title and option:
            last = option
            result.groups[title].append(option)
        elif title and last and re.match(r" {4,}\S", line):
            last.text = f"{last.text} {line.strip()}".strip()
        elif title and line.strip():
            title, last = "", None
            result.after.append(line)
        elif title is None:
            result.before.append(line)
        elif not title:
            result.after.append(line)
    return result


def read_script(text):
    """tune.sh's own options, of the comment it begins with: "#   -n N    text", and lines that go on."""
    options = []
    for line in text.splitlines()[1:]:
        if not line.startswith("#"):
            break
        found = re.match(r"#   (--?[\w-]+)(?: (\[?[A-Z]+\]?))?\s{2,}(.*)", line)
        if found:
            options.append(Option([found[1]], (found[2] or "").strip("[]"), found[3]))
        elif options and re.match(r"# {10,}\S", line):
            options[-1].text += " " + line[1:].strip()
        elif re.match(r"#   \S", line):
            continue  # "other options"
    return options


def roff(text):
    text = text.replace("\\", r"\e").replace("-", r"\-")
    return r"\&" + text if text.startswith((".", "'")) else text


def roff_block(lines):
    return [".nf", *map(roff, lines), ".fi"]


def roff_options(options):
    lines = []
    for option in options:
        names = ", ".join(rf"\fB{roff(name)}\fR" for name in option.names)
        lines += [".TP", names + (rf" \fI{roff(option.value)}\fR" if option.value else ""), roff(option.text)]
    return lines


def page(name, version, about, synopsis, body):
    head = [f'.TH {name.upper()} 1 "" "{version}" "User Commands"', ".SH NAME", roff(f"{name} - {about}"),
            ".SH SYNOPSIS", *roff_block(synopsis)]
    return "\n".join(head + body) + "\n"


def program_page(version, told):
    usage = next(number for number, line in enumerate(told.before) if line.startswith("Usage:"))
    behind = next((number for number in range(usage, len(told.before)) if not told.before[number]), len(told.before))
    about = told.before[0].rstrip(".")
    synopsis = [line[7:] for line in told.before[usage:behind]]
    body = [".SH DESCRIPTION", *roff_block(line.strip() for line in told.before[behind:] if line.strip())]
    for title, options in told.groups.items():
        body += [f'.SH "{title.upper()}"', *roff_options(options)]
    body += [".SH NOTES", *roff_block(told.after), ".SH SEE ALSO", r"\fBdstune\fR(1)"]
    return page("dstune-mpi", version, about[0].lower() + about[1:], synopsis, body)


def script_page(version, script, told):
    body = [".SH DESCRIPTION", "Starts dstune\\-mpi with the launcher of its MPI library, one worker per GPU or core,",
            "and starts a run again that lost a rank."]
    body += [".SH OPTIONS", *roff_options(script), ".SH \"OPTIONS OF DSTUNE\\-MPI\"",
             *roff_options(told.options()), ".SH SEE ALSO", r"\fBdstune-mpi\fR(1)"]
    return page("dstune", version, "tunes a DeepSpeed configuration on this machine, or on hosts",
                ["dstune [CONFIG.json] [options] [-- training command]"], body)


def names_of(options):
    return [name for option in options for name in option.names]


def bash_case(options):
    lines = []
    for option in options:
        if not option.value:
            continue
        words = option.words()
        if words:
            reply = f'COMPREPLY=($(compgen -W "{" ".join(words)}" -- "$word"))'
        elif option.value in FOLDERS:
            reply = 'COMPREPLY=($(compgen -d -- "$word"))'
        elif option.value in FREE:
            reply = "COMPREPLY=()"
        else:
            reply = 'COMPREPLY=($(compgen -f -- "$word"))'
        lines.append(f"    {' | '.join(option.names)}) {reply}; return ;;")
    return lines


def bash_completion(script, told):
    own = " ".join(names_of(told.options()))
    more = " ".join(names_of(script))
    return "\n".join([
        "# Completion of dstune-mpi and dstune for bash, made by scripts/make_manual.py.",
        "_dstune_mpi() {",
        '  local word=${COMP_WORDS[COMP_CWORD]} options="' + own + '"',
        '  [ "${COMP_WORDS[0]##*/}" != dstune ] || options+=" ' + more + '"',
        '  case ${COMP_WORDS[COMP_CWORD-1]} in', *bash_case(told.options() + script), "  esac",
        '  if [[ $word == -* ]]; then COMPREPLY=($(compgen -W "$options" -- "$word"))',
        '  else COMPREPLY=($(compgen -f -- "$word")); fi', "}",
        "complete -o filenames -F _dstune_mpi dstune-mpi dstune", ""])


def zsh_arguments(options):
    lines = []
    for option in options:
        text = re.sub(r"[\[\]:\\'\"`$]", " ", option.text)
        action = ""
        if option.value:
            words = option.words()
            action = f":{option.value.replace('|', ' ')}:" + (
                f"({' '.join(words)})" if words else "_files -/" if option.value in FOLDERS else
                "" if option.value in FREE else "_files")
        lines += [f"    '*{name}[{text}]{action}'" for name in option.names]
    return lines


def zsh_completion(script, told):
    return "\n".join([
        "#compdef dstune-mpi dstune", "# Completion of dstune-mpi and dstune for zsh, made by scripts/make_manual.py.",
        "local -a options", "options=(", *zsh_arguments(told.options()), ")",
        "if [[ $service == dstune ]]; then", "  options+=(", *zsh_arguments(script), "  )", "fi",
        "_arguments $options '*:CONFIG.json:_files'", ""])


def main():
    program, tune, folder = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])

    def ask(option):
        return subprocess.run([program, option], stdout=subprocess.PIPE, text=True, check=True).stdout

    told = read_help(ask("--help"))
    script = read_script(tune.read_text(encoding="utf-8"))
    version = " ".join(ask("--version").split(",")[0].split()[:2])
    folder.mkdir(parents=True, exist_ok=True)
    texts = {"dstune-mpi.1": program_page(version, told), "dstune.1": script_page(version, script, told),
             "dstune-mpi.bash": bash_completion(script, told), "_dstune-mpi": zsh_completion(script, told)}
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

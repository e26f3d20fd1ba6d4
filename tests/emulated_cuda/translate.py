#!/usr/bin/env python3
"""translate.py IN OUT - translates CUDA C++ to C++, for the emulation in this
folder.

Three constructs of a .cu or .cuh file are not C++, and are replaced. The rest
is unchanged:

    kernel<<<grid, block, shared, stream>>>(args)   a call of emulated::launch()
    __shared__ type name[n], ..;                    memory of emulated::shared()
    asm volatile("..." : outputs : inputs : ..)     a call of emulated::ptx
"""

import pathlib
import re
import sys

OPEN, CLOSE = "([{", ")]}"


def closing(text, at):
    """The index of the bracket that closes the one at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] in OPEN) - (text[i] in CLOSE)
        if depth == 0:
            return i
    sys.exit(f"translate: no closing bracket for: {text[at:at + 60]}")


def split(text, mark):
    """Splits the text at every `mark` outside of brackets and strings."""
    parts, depth, quoted = [""], 0, False
    for i, c in enumerate(text):
        quoted ^= c == '"' and text[i - 1] != "\\"
        depth += 0 if quoted else (c in OPEN) - (c in CLOSE)
        if c == mark and depth == 0 and not quoted:
            parts.append("")
        else:
            parts[-1] += c
    return [part.strip() for part in parts]


def kernel_before(text, end):
    """The kernel's name and template arguments that end at `end`."""
    at = len(text[:end].rstrip())
    end = at
    if text[at - 1] == ">":
        depth = 0
        while True:
            at -= 1
            depth += (text[at] == ">") - (text[at] == "<")
            if depth == 0:
                break
    return text[:end][re.search(r"\w+$", text[:at]).start() :]


def replaced(text, start, end, new):
    """text, with `new` in place of text[start:end], and as many lines as
    before."""
    lines = text.count("\n", start, end) - new.count("\n")
    return text[:start] + new + "\n" * lines + text[end:]


def launches(text):
    while (at := text.find("<<<")) >= 0:
        kernel = kernel_before(text, at)
        start = text[:at].rindex(kernel)
        to = text.index(">>>", at)
        shape = text[at + 3 : to]
        first = text.index("(", to)
        last = closing(text, first)
        name = re.match(r"\w+", kernel).group()
        call = (
            f'emulated::launch("{name}", {{{shape}}}, '
            f"[](auto... a) {{ {kernel}(a...); }}, {text[first + 1 : last]})"
        )
        text = replaced(text, start, last + 1, call)
    return text


SHARED = re.compile(
    r"(extern )?__shared__\s+(?:alignas\((\d+)\)\s+)?(\w+)\s+([^;]+);"
)


def one_shared(match):
    extern, align, kind, names = match.groups()
    out = ""
    for declared in split(names, ","):
        name, dims = re.fullmatch(r"(\w+)(.*)", declared, re.S).groups()
        if extern:
            out += f"{kind} *{name} = emulated::dynamic_shared();"
            continue
        full = f"{name}_type"
        out += (
            f"typedef {kind} {full}{dims}; static char {name}_id; "
            f"{full} &{name} = *({full} *)emulated::shared(&{name}_id, "
            f"sizeof({full}), {align or f'alignof({full})'});"
        )
    return out


CONSTRAINT = re.compile(r'"[^"]*"')


def operands(text, call):
    return [
        f"emulated::{call}{CONSTRAINT.sub('', one, 1)}"
        for one in split(text, ",")
        if one
    ]


def assembly(text):
    done = 0
    while match := re.compile(r"\basm(?: volatile)?\(").search(text, done):
        last = closing(text, match.end() - 1)
        parts = split(text[match.end() : last], ":") + ["", ""]
        words = operands(parts[1], "output") + operands(parts[2], "input")
        call = (
            f"{{ static const emulated::ptx instruction({parts[0]}); "
            f"instruction({{{', '.join(words)}}}); }}"
        )
        text = replaced(text, match.start(), last + 1, call)
        done = match.start() + len(call)
    return text


def main():
    source, target = map(pathlib.Path, sys.argv[1:])
    text = assembly(launches(SHARED.sub(one_shared, source.read_text())))
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(f'#line 1 "{source}"\n{text}')


main()

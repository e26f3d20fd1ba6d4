"""rules.py - what a student's file may contain and call.

The lists are those that the handouts promise: the calls of lab.h and disk.h, the
functions of <string.h>, <math.h>, <ctype.h> and <stdlib.h> that only compute, and output.
A score does not depend on them, since the file runs in a process of its own that has
nothing to forge. They keep accidents away, and name what looks like a trick.
"""

import contextlib
import fnmatch
import itertools
import re
import signal


class Refused(Exception):
    """The file cannot be graded; the text says why."""


PROCESSOR_S = 10  # that these rules may take for one file; a right one needs a tenth


@contextlib.contextmanager
def limited(name):
    """Refuse a file that is written so that reading it takes for ever."""
    def end(*_):
        raise Refused(f"{name} takes more than {PROCESSOR_S} s to read; try: plain C")

    was = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, PROCESSOR_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, was)


# Each of these also has the suffixes f and l.
MATH = """
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10
    exp2 expm1 fabs fdim floor fma fmax fmin fmod frexp hypot ilogb ldexp lgamma llrint
    llround log log10 log1p log2 logb lrint lround modf nan nearbyint nextafter
    nexttoward pow remainder remquo rint round scalbln scalbn sin sincos sinh sqrt tan
    tanh tgamma trunc
""".split()
ALLOWED = """
    lab_send lab_recv lab_recv_any lab_isend lab_irecv lab_wait lab_now
    lab_compute lab_alloc lab_missing
    disk_create disk_open disk_write disk_read disk_sync disk_close disk_rename
    disk_remove disk_sync_folder disk_list
    memccpy memchr memcmp memcpy memmem memmove mempcpy memrchr memset rawmemchr bcmp
    stpcpy stpncpy strcasecmp strcat strchr strchrnul strcmp strcpy strcspn strlen
    strncasecmp strncat strncmp strncpy strnlen strpbrk strrchr strsep strspn strstr
    strtod strtof strtok_r strtol strtold strtoll strtoul strtoull
    __isoc23_strto* __isoc??_sscanf atof atoi atol atoll
    abs labs llabs div ldiv lldiv qsort bsearch
    printf fprintf puts putchar fputs fputc putc fwrite fflush perror snprintf sprintf
    sscanf vprintf vfprintf vsnprintf vsprintf stdout stderr
    isalnum isalpha isblank iscntrl isdigit isgraph islower isprint ispunct isspace
    isupper isxdigit tolower toupper
    __ctype_b_loc __ctype_tolower_loc __ctype_toupper_loc __errno_location
    isnan isinf finite isnanf isinff finitef
    __assert_fail __assert __stack_chk_fail __stack_chk_guard __*_chk
    _GLOBAL_OFFSET_TABLE_ __*tf2 __*tf3 __*tf[sdxt]f2 __fix*tf[sdt]i __float*itf
    __*ti2 __*ti3 __*ti4 __fix*[sdx]fti __float*ti[sdx]f
    __isnan* __isinf* __finite* __fpclassify* __signbit* __issignaling* __*_finite
""".split() + [name + suffix for name in MATH for suffix in ("", "f", "l")]
SECTIONS = """.text .text.unlikely .text.hot .text.startup .text.exit .text.*.[a-z]*
    .text.sorted.* .text.unlikely.* .data* .bss* .rodata .rodata.* .eh_frame* .comment*
    .note* .debug* .group* .llvm* .tdata* .tbss*""".split()
# What compilers add for the sanitizers.
SANITIZERS = ["__asan_*", "__ubsan_*", "__odr_asan*"]
# These give a file memory that lab_alloc() has not counted.
UNCOUNTED = ["sscanf", "__isoc??_sscanf"]
VARIABLES = ".data* .bss* .tdata* .tbss*".split()

# Attributes that change neither names nor places.
ATTRIBUTES = """unused noinline always_inline const pure format printf aligned packed
    warn_unused_result hot cold nonnull fallthrough may_alias flatten gnu maybe_unused
    nodiscard""".split()
WORDS = {
    "asm": "assembler", "__asm": "assembler", "__asm__": "assembler",
    "_fileno": "the inside of a stream", "_Pragma": "a pragma",
    "__builtin_return_address": "an address of the grader",
    "__builtin_frame_address": "an address of the grader",
    "__builtin_apply": "a call that cannot be checked",
    "__rdtsc": "a clock", "_rdtsc": "a clock", "__rdtscp": "a clock",
    "__builtin_ia32_rdtsc": "a clock", "__builtin_ia32_rdtscp": "a clock",
    "__builtin_readcyclecounter": "a clock",
}
# Not `diagnostic`: it would switch off the errors that limit the stack.
PRAGMAS = re.compile(r"(once|STDC|GCC (unroll|ivdep)|clang loop)\b")
TRY = "lab.h, disk.h, <string.h>, <math.h>, <ctype.h>, printf and fprintf(stderr)"


def fits(name, patterns):
    return any(fnmatch.fnmatchcase(name, p) for p in patterns)


# A comment, or something in which one does not begin.
PIECES = re.compile(r'(?P<raw>\b(?:u8|[uUL])?R")|"(?:\\.|[^"\\\n])*"|'
                    r"'(?:\\.|[^'\\\n])*'|(?P<comment>//[^\n]*|/\*.*?\*/)", re.S)
RENAMES_LINES = re.compile(r"^[\s\0]*(?:#|%:)[\s\0]*(?:line\b|\d)", re.M)
EMBEDS = re.compile(r"^[\s\0]*(?:#|%:)[\s\0]*embed\b", re.M)


def judge_directives(source, name):
    """Refuse what gives other numbers or names to a file's lines: they would pass for
    those of a header. Raw strings would hide it."""
    pieces = re.split(r"\\[ \t\r\f\v]*\n", source)  # a line may go on in the next
    ends = list(itertools.accumulate(map(len, pieces)))[:-1]
    text = "".join(pieces)

    def refuse(at, what):
        number = 1 + text.count("\n", 0, at) + sum(end <= at for end in ends)
        raise Refused(f"{name}:{number} has {what}; try: plain C")

    def blank(piece):
        if piece["raw"]:
            refuse(piece.start(), "a raw string")
        return re.sub(r"[^\n]", " ", piece[0]) if piece["comment"] else piece[0]

    text = PIECES.sub(blank, text)
    for pattern, what in ((RENAMES_LINES, "a #line"), (EMBEDS, "an #embed")):
        found = pattern.search(text)
        if found:
            refuse(found.end(), what)


def own_lines(text, name):
    """(number, line) of each line of the file itself in a preprocessor's output."""
    number, mine = 0, False
    for line in text.splitlines():
        marker = re.match(r'# (\d+) "(.*?)"', line)
        if marker:
            number, mine = int(marker[1]), marker[2] == name
            continue
        if mine:
            yield number, line
        number += 1


def without_strings(line):
    return re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])*\'', '""', line)


def judge_attributes(words, places, name):
    """Refuse attributes that are not in ATTRIBUTES, on however many lines."""
    for i, word in enumerate(words):
        depth = 0
        begins = word in ("__attribute", "__attribute__") or words[i:i + 2] == ["[", "["]
        for k in range(i + 1, len(words)) if begins else ():
            depth += (words[k] in "([") - (words[k] in ")]")
            if words[k][0].isalpha() or words[k][0] == "_":
                if words[k].strip("_") not in ATTRIBUTES:
                    raise Refused(f"{name}:{places[k]} has the attribute {words[k]}; try: a "
                                  "plain function")
            if depth <= 0:
                break


TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|\"\"|\S")
POINTER = re.compile(r"\( (?:\* )+(\w* ?)\) \( ")  # ( * NAME ) ( in a declaration


def function_types(text):
    """The names that a text's typedefs give to functions and pointers to them."""
    names = {"typeof", "__typeof", "__typeof__"}
    for typedef in re.findall(r"\btypedef ([^;{}]*;)", text):
        found = POINTER.search(typedef) or re.search(r"(\w+ )\( [^;]*\) ;", typedef)
        known = any(word in names for word in typedef.split())
        if found or known:
            names.add(found[1].strip() if found else typedef.split()[-2])
    return names


def judge_functions(words, places, name):
    """Refuse casts of data to functions, and unions of both. There are other ways to call
    data, which crash: it cannot be executed."""
    text = " ".join(words) + " "
    its = "|".join(sorted(function_types(text)))
    types = rf"(?:const |volatile )*(?:{its}) (?:\( [^;{{}}]*\) )?"
    for pattern in (rf"(?<!\w )\( (?:[\w* ]*{POINTER.pattern}[^()]*\) |{types}(?:\* )*)\) [\w(&*]",
                    rf"\bunion (?:\w+ )?\{{ [^}}]*(?:{POINTER.pattern}|\b(?:{its}) )"):
        found = re.search(pattern, text)
        if found:
            where = f"{name}:{places[text.count(' ', 0, found.end() - 1)]}"
            raise Refused(f"{where} casts to a function; try: call it by its name")


def judge_words(text, name):
    """Refuse assembler, attributes, directives, and casts of data to functions. `text`: the
    preprocessor's output."""
    words, places = [], []
    for number, line in own_lines(text, name):
        line = without_strings(line)
        found = TOKEN.findall(line)
        words += found
        places += [number] * len(found)
        directive = re.match(r"\s*(?:#|%:)\s*(\w*\s*)(.*)", line)
        if directive and not (directive[1].strip() == "pragma" and PRAGMAS.match(directive[2])):
            raise Refused(f"{name}:{number} has the {directive[1]}{directive[2]}; try: plain C")
        for word in found:
            if word in WORDS:
                raise Refused(f"{name}:{number} uses {word}: {WORDS[word]}; try: plain C")
    judge_attributes(words, places, name)
    judge_functions(words, places, name)


def line_of(symbol, source):
    """":12" if line 12 of a text is the first that has this word, else ""."""
    for number, line in enumerate(source.splitlines(), 1):
        if re.search(rf"\b{re.escape(symbol)}\b", line):
            return f":{number}"
    return ""


def why_not(kind, symbol, lab, more):
    """What a file may not do with a symbol of nm's list; "": it may."""
    if lab.frame and fits(symbol, UNCOUNTED):
        return f"uses {symbol}, whose memory is not counted; try: strtol, strtod"
    if fits(symbol, more):
        return ""
    if kind in "Uwv" and not fits(symbol, ALLOWED):
        return f"uses {symbol}, which a lab's file may not; try: {TRY}"
    if kind in "iu":
        return f"defines {symbol}, a symbol for the loader; try: a plain function"
    if kind.isupper() and kind != "U" and symbol not in lab.functions:
        return f"defines {symbol}; try: make it static"
    return ""


def judge_symbols(listed, name, source, lab, more):
    """Refuse by nm's list what a file calls and defines. `more`: names that are allowed."""
    found = set()
    for line in listed.splitlines():
        kind, symbol = line.split()[-2:]
        why = why_not(kind, symbol, lab, more)
        if why:
            raise Refused(f"{name}{line_of(symbol, source)} {why}")
        if kind == "T":
            found.add(symbol)
    for symbol in lab.functions:
        if symbol not in found:
            raise Refused(f"{name} does not define {symbol}()")


def judge_sections(headers, name):
    """Refuse by objdump's list code that runs before main, and static variables."""
    found = re.findall(r"^ *\d+ (\S+) +([0-9a-f]+) ", headers, re.M)
    for section, _ in found:
        if not fits(section, SECTIONS):
            raise Refused(f"{name} has the section {section}: code that runs before main, "
                          "or is none; try: plain functions")
    if re.search(r" \.note\.GNU-stack .*\bCODE\b", headers):
        raise Refused(f"{name} needs a stack that can be executed: it takes the address of a "
                      "function within a function; try: plain functions")
    for section, size in found:
        if fits(section, VARIABLES) and int(size, 16) and \
                not section.startswith(".data.rel.ro"):
            raise Refused(f"{name} has static variables: all ranks of the virtual cluster "
                          "would share them, and real workers do not; try: local "
                          "variables, lab_alloc(), static const")

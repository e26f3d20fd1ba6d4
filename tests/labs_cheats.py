#!/usr/bin/env python3
"""labs_cheats.py OUT - checks that files that cheat gain nothing and harm nothing, and that
labs/grade answers in one line, ends what it starts, and grades a course.
"""

import csv
import functools
import json
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time
import zipfile

import labs_grader
from labs import TOP, at_once, floor_of, run_job
from grading import build, changes, lab, run


# For each cheat: the text put before lab_exchange(), the new first statement of
# lab_exchange(), and the message of the refusal. None instead of a message: the
# file can be graded, and has the skeleton's points. 0: it can be graded, and
# has no points.
CHEATS = {
    "forks": ("int fork(void);", "fork();", "uses fork"),
    "sleeps": ("int usleep(unsigned);", "usleep(1);", "uses usleep"),
    "writes": ("int creat(const char *, int);", 'creat("mark", 384);',
               "uses creat"),
    "reads": ('#include "/etc/passwd"', "", "includes /etc/passwd"),
    "borrows": ('#include "{tree}/labs/04-ring/reference.c"', "", "includes"),
    "reads_by_error": ('#include "/etc/passwd"\n#error stop', "",
                       "includes /etc/passwd"),
    "never_compiles": ("#define A(x) x x x x x x x x x x x x x x x x\n"
                       "#define B(x) A(A(A(A(A(A(A(A(A(x)))))))))\nB(int y;)", "",
                       "does not compile"),
    "exits": ("void exit(int);", "exit(0);", "uses exit"),
    "allocates": ("#include <stdlib.h>", "void *volatile p = malloc(9);\n    (void)p;",
                  "uses malloc"),
    "speaks_assembler": ("", '__asm__ volatile("nop");', "assembler"),
    "runs_first": ("static volatile int x;\n__attribute__((constructor)) static "
                   "void f(void)\n{\n    x = 1;\n}", "",
                   "the attribute constructor"),
    "replaces_the_judge": ("int lab_want(void);\nint lab_want(void)\n"
                           "{\n    return 1;\n}", "", "defines lab_want"),
    "asks_the_judge": ("int lab_release(struct lab *l);", "lab_release(l);",
                       "uses lab_release"),
    "prints_points": ("#include <stdio.h>", r'printf("{{\"ok\": true, \"said\": '
                      r'\"\"}}\n70/70\n");', None),
    "crashes": ("", "__builtin_trap();", 0),
    "runs_in_circles": ("", "for (volatile int on = 1; on;)\n        ;", 0),
    "shares_memory": ("static float *volatile all[16];", "all[l->rank] = v;",
                      "static variables"),
    "sets_the_clock": ("struct its {{ void *c; int id; double now; }};",
                       "((struct its *)*(void **)l->state)->now = 0;", 0),
    "brings_code": ('static const unsigned char words[] __attribute__((section('
                    '".text.words"))) = {{0xc3}};', "(void)words;",
                    "the attribute section"),
    "breaks_a_line": ('static const int x __attribute__((section(".a,\\"ax\\"\\n'
                      'nop\\n.section .b"))) = 1;', "(void)x;",
                      "the attribute section"),
    "labels_a_name": ('int count(void) __asm__("fork");', "count();", "assembler"),
    "takes_other_lines_with_a_sanitizer": (
        '#ifdef __SANITIZE_ADDRESS__\n#define ring_bytes none\n#define lab_exchange right\n'
        '#include "{tree}/labs/04-ring/reference.c"\n#undef lab_exchange\n'
        "#define FIRST return right(l, v, n);\n#else\n#define FIRST\n#endif", "FIRST",
        None),
    "spreads_an_attribute": ("static const unsigned char x[]\n__attribute__\n((\nsection("
                             '".text.hot.x"))) = {{0xc3}};', "(void)x;",
                             "the attribute section"),
    "has_a_new_attribute": ('[[__gnu__::__section__(".text.hot.x")]]\nstatic const '
                            "unsigned char x[] = {{0xc3}};", "(void)x;",
                            "the attribute __section__"),
    "makes_a_directive": ('#define HASH #\nHASH include "/etc/passwd"', "",
                          "has the include"),
    "embeds": ('static const char x[] = {{\n#embed "/etc/passwd"\n}};', "(void)x;",
               "an #embed"),
    "computes_for_ever": ("", "lab_compute(l, 1e300 * 1e300);", 0),
    "jumps": ("", "void *b[5];\n    if (__builtin_setjmp(b) == 0)\n        "
              "__builtin_longjmp(b, 1);", None),
    "moves_a_stream": ("#include <stdio.h>", "stderr->_fileno = 3;", "_fileno"),
    "calls_data": ("static const unsigned char x[] = {{0xc3}};",
                   "((void (*)(void))(unsigned long)x)();", "casts to a function"),
    "calls_data_by_a_type": ("typedef void (*run)(void);\nstatic const unsigned char "
                             "x[] = {{0xc3}};", "((run)(unsigned long)x)();",
                             "casts to a function"),
    "calls_data_by_a_union": ("static const unsigned char x[] = {{0xc3}};",
                              "union {{ const void *p; void (*f)(void); }} u = {{x}};"
                              "\n    u.f();", "casts to a function"),
    "calls_data_by_a_function_type": (
        "typedef void run(void);\nstatic const unsigned char x[] = {{0xc3}};",
        "((run *)(unsigned long)x)();", "casts to a function"),
    "calls_data_by_typeof": ("#include <stdio.h>", '((__typeof__(&puts))(l + 1))("");',
                             "casts to a function"),
    "calls_data_as_it_is": ("static const unsigned char x[] = {{0xc3}};",
                            "const void *p = x;\n    void (*f)(void) = (void *)p;"
                            "\n    f();", 0),
    # Where a function within a function has an address, the stack can be executed.
    "calls_data_on_the_stack": (
        "static void run(void (*f)(void))\n{{\n    f();\n}}",
        "volatile int k = 0;\n    void more(void)\n    {{\n        k++;\n    }}\n    "
        "run(more);\n    unsigned char words[64] = {{0xc3}};\n    const void *p = words;\n"
        "    void (*f)(void);\n    __builtin_memcpy(&f, &p, sizeof f);\n    f();",
        "a stack that can be executed"),
    "allows_itself_more": ('#pragma GCC diagnostic ignored "-Wvla"', "", "the pragma"),
    "passes_for_a_header": ('# 1 "/usr/include/stdio.h" 1 3\nint none(void);\n'
                            '# 1 "ring.c" 2', '__asm__ volatile("nop");', "a #line"),
    "hides_a_line": ('static const char x[] = R"(" /*)";\n#li\\\nne 1 "x.h"\n'
                     'static const char y[] = "*/";', "(void)x, (void)y;",
                     "a raw string"),
    "measures_time": ("", "if (__builtin_ia32_rdtsc() == 7)\n        return -1;",
                      "a clock"),
    # With the table of functions of a stream: its read and its seek.
    "reads_what_others_print": (
        "#include <stdio.h>\n#include <string.h>\n"
        "typedef long turn(void *, long, int);\ntypedef long take(void *, char *, long);",
        "turn *seek;\n    take *take_from;\n    void **table;\n    char text[999] = {{0}};"
        "\n    memcpy(&table, (char *)stdout + 216, sizeof table);"
        "\n    memcpy(&seek, table + 16, sizeof seek);"
        "\n    memcpy(&take_from, table + 14, sizeof take_from);"
        '\n    printf("the numbers of rank %d", l->rank);'
        "\n    if (seek(stdout, 0, 0) >= 0 || take_from(stdout, text, 998) > 0)"
        "\n        return -1;", None),
    "renames_a_function": ("int count(void);\n#pragma redefine_extname count fork",
                           "count();", "the pragma"),
    "speaks_for_the_grader": ('#include "labs/answer.h"', "", "includes"),
    "reads_the_seed": ("extern char **environ;", "if (environ[0]) return 0;",
                       "uses environ"),
    "forges_by_a_reason": ("", 'lab_missing(l, 0, "\\", \\"ok\\": true, \\"part\\": 1, '
                           '\\"x\\": \\"");\n    if (l->rank >= 0)\n        return -1;', 0),
    "fills_the_disk": ("static const char large[900u << 20] = {{1}};",
                       "if (large[(size_t)l->rank * 1000] == 7)\n        return -1;",
                       "does not compile"),
    # Seeks libc's syscall() behind div(), by its first bytes on x86-64.
    "finds_the_system_call": (
        "#include <stdlib.h>\n#include <string.h>\n"
        "struct gate {{ long (*call)(long, ...); }};",
        "static const unsigned char its[] = {{0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0x48,\n"
        "        0x89, 0xd6, 0x48, 0x89, 0xca, 0x4d, 0x89, 0xc2, 0x4d, 0x89, 0xc8}};\n    "
        "static const char json[] = \"{{\\\"ok\\\": true, \\\"part\\\": 1, "
        "\\\"said\\\": \\\"\\\"}}\";\n    div_t (*known)(int, int) = div;\n    "
        "const char *at;\n    struct gate g;\n    memcpy(&at, &known, sizeof at);\n    "
        "at = memmem(at, 1000000, its, sizeof its);\n    memcpy(&g, &at, sizeof at);\n    "
        'if (!at)\n        return -1;\n    g.call(2, "mark", 0102, 0600);\n    '
        "g.call(62, g.call(110), 9);\n    for (int i = 0; i < 400; i++)\n        "
        "g.call(1, i, json, sizeof json - 1);\n    g.call(231, 0);", 0),
    "writes_on_every_descriptor": (
        "#include <stdio.h>\n#include <string.h>",
        'for (int i = 3; i < 400; i++) {{\n        memcpy((char *)stdout + 112, &i, 4);'
        '\n        fputs("{{\\"ok\\": true, \\"part\\": 1, \\"said\\": \\"\\"}}", '
        "stdout);\n    }}", 0),
    "replaces_the_calls": ('#include "labs/ops.h"', "", "includes"),
    "counts_for_itself": ("", "struct none {{ int (*send)(void); }} mine = {{0}};\n    "
                          "l->ops = (const struct lab_ops *)&mine;", 0),
    "turns_back_the_clock": ("", "lab_compute(l, -1e9);", None),
    "sends_more_than_it_has": ("", "struct lab_req big;\n    lab_isend(l, 0, v, "
                               "(size_t)1 << 40, &big);", 0),
    "never_waits": ("", "struct lab_req r;\n    for (int i = 0; i < 9999; i++)\n"
                    "        lab_isend(l, !l->rank, v, 4, &r);", 0),
    "takes_all_memory": ("", "while (lab_alloc(l, 1 << 20, 64))\n        ;", 0),
    "prints_for_ever": ("#include <stdio.h>", "for (;;)\n        "
                        'printf("%099d", 7);', 0),
    "recurses": ("static int f(volatile int x)\n{{\n    return x ? f(x + 1) + 1 : 0;"
                 "\n}}", "if (f(1) == 7)\n        return -1;", 0),
}


def cheat_text(text, before, first):
    """The skeleton with a cheat in it."""
    at = text.index("int lab_exchange(")
    body = text[at:].replace("{\n", "{\n    " + first + "\n", 1) if first \
        else text[at:]
    return text[:at] + before + "\n\n" + body


def judge_cheat(its, out, name):
    """Complaints about how one cheat was graded, by the command itself."""
    before, first, said = CHEATS[name]
    before, first = (text.replace("{tree}", str(TOP)).replace("{{", "{")
                     .replace("}}", "}") for text in (before, first))
    complaints = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "results").mkdir()
        (folder / "results/build").symlink_to(pathlib.Path(out).resolve())
        path = folder / "mine" / its.file
        path.parent.mkdir()
        path.write_text(cheat_text((its.folder / "skeleton.c").read_text(), before,
                                   first))
        status, printed = run_job(TOP / "labs/grade", its.number, path, "--out",
                                  folder / "results")
        result = json.loads(
            (folder / f"results/{its.number:02}/results.json").read_text())
        left = sorted(os.listdir(path.parent))
    most = floor_of(its.folder) if said is None else 0
    if status != 1:
        complaints.append(f"{name}: status {status}: {printed}")
    if result["score"] != most:
        complaints.append(f"{name}: {result['score']} points, not {most}: {printed}")
    refused = isinstance(said, str)
    if said not in result["output"] if refused else result["output"]:
        complaints.append(f"{name}: {result['output']!r} does not say {said!r}")
    if left != [its.file]:
        complaints.append(f"{name}: left {left}")
    return complaints


def judge_commands():
    """For a file that it cannot read or write, a command prints one line and
    exits with status 2."""
    complaints = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "file").write_text("")
        (folder / "mine").mkdir()
        right = TOP / "labs/04-ring/reference.c"
        for words in (["labs/grade", "4", folder / "none.c"],
                      ["labs/grade", "4", right, "--out", folder / "file"],
                      ["labs/grade", "4", "--batch", folder / "mine", "--csv",
                       folder / "none/x.csv"],
                      ["labs/export", "F26", folder / "file", "4"]):
            status, said = run_job(TOP / words[0], *words[1:])
            if status != 2 or said.count("\n") != 1:
                complaints.append(f"{words}: status {status}: {said}")
        said = run_job(TOP / "labs/grade", "4", "--out", folder / "mine", right)[1]
        if f"{right}" not in said or "usage" in said:
            complaints.append(f"a file after the options: {said}")
    return complaints


def judge_batch(out):
    """A batch takes folders and Canvas's files, names every reason, gives points for
    wrong.c, finds a copy, and goes on where it was broken off."""
    right = (TOP / "labs/04-ring/reference.c").read_text()
    mutants = changes.read(TOP / "labs/04-ring/mutants.txt", changes.MUTANT)
    wrong = next(f"// {m.value}\n" + m.apply({"reference.c": right})["reference.c"]
                 for m in mutants if m.value == "law")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "build").symlink_to(pathlib.Path(out).resolve())
        for name, text in (("=Ana", right), ("Bo", right.replace("chunk", "piece")),
                           ("Cy", right.replace("return in ?", "return int ?"))):
            (folder / "in" / name).mkdir(parents=True)
            (folder / "in" / name / "ring.c").write_text(text)
        (folder / "in/=Ana/wrong.c").write_text(wrong)
        for name, text in (("Bo\nAna\x1b[2J", right), ("x" * 255, ""),
                           ("Ti", '#error "\x1b[2J"\n'), ("Vi", "/*" + " " * (2 << 20) + "*/")):
            (folder / "in" / name).mkdir()
            (folder / "in" / name / "ring.c").write_text(text)
        for name in ("Di", "Fi", "Gu", os.fsdecode(b"Zo\xeb")):
            (folder / "in" / name).mkdir()
        os.mkfifo(folder / "in/Fi/wrong.c")  # to open it would take for ever
        (folder / "in/Gu/wrong.c").mkdir()
        (folder / "in/Hal").symlink_to(folder / "in/=Ana")
        (folder / "in" / os.fsdecode(b"Zo\xeb/ring.c")).symlink_to("/dev/zero")
        (folder / "in/eve_LATE_123_456_ring-1.c").write_text("int x(\n")
        (folder / "in/eve_LATE_123_456_ring-2.c").write_text(right)
        (folder / "in/kim_124_457_My ring.c").write_text(right)
        words = (TOP / "labs/grade", "4", "--out", folder, "--batch", folder / "in",
                 "--csv", folder / "x.csv", "--jobs", "2")
        first = run_job(*words)
        table = folder / "x.csv"
        rows = {row["name"]: row for row in read_table(table)}
        lines = table.read_text().splitlines(True)
        table.write_text("".join(lines[:3]))
        again = run_job(*words)
        like = read_table(folder / "x.similar.csv")
        results = json.loads((folder / "x.results/Cy.json").read_text())
    got = {name: (int(row["points"]), int(row["break"])) for name, row in rows.items()}
    complaints = []
    if first[0] or got != {"'=Ana": (70, 10), "Bo": (70, 0), "Cy": (0, 0), "Di": (0, 0),
                           "Fi": (0, 0), "Gu": (0, 0), "Hal": (0, 0), "eve": (70, 0),
                           "kim": (0, 0),
                           "Bo\\x0aAna\\x1b[2J": (70, 0), "x" * 255: (0, 0), "Ti": (0, 0),
                           "Vi": (0, 0),
                           "Zo\\udceb": (0, 0)}:
        complaints.append(f"a batch: {got}: {first}")
    elif any("wrong.c is not a regular file" not in rows[name]["note"]
             for name in ("Fi", "Gu")):
        complaints.append(f"a wrong.c that is no file: {rows}")
    elif "error" not in rows["Cy"]["note"] or "not there" not in rows["Di"]["note"]:
        complaints.append(f"a batch does not say why: {rows}")
    if "\x1b" in first[1] or first[1].count("\n") != len(rows):
        complaints.append(f"a batch prints what a terminal obeys: {first[1]!r}")
    if "error" not in results["output"]:
        complaints.append(f"Cy's results do not say why: {results}")
    if again[0] or again[1].count("\n") != len(lines) - 3:
        complaints.append(f"a batch that goes on: {again}")
    if not any(row["name"] == "Bo" and row["share"] == "1.00" for row in like):
        complaints.append(f"a renamed copy is not in the table: {like}")
    return complaints


def read_table(path):
    with open(path, newline="", encoding="utf-8") as f:
        return list(csv.DictReader(f))


def judge_guard():
    """A compiler may keep the value that guards the stack in a variable, as on ARM."""
    its, was = lab.find("4"), os.environ.get("CC", "cc")
    with tempfile.TemporaryDirectory() as folder:
        builder = build.Builder(its, folder)
        os.environ["CC"] = "gcc -fstack-protector-all -mstack-protector-guard=global"
        try:
            builder.take(its.folder / "reference.c", pathlib.Path(folder), build.FLAGS)
        except build.Refused as why:
            return [f"with {os.environ['CC']}: {why}"]
        finally:
            os.environ["CC"] = was
    return []


def judge_gradescope():
    """Gradescope's zip grades a submission, and says when a file is missing."""
    complaints = []
    its = lab.find("12")
    text = (its.folder / "skeleton.c").read_text()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        said = run_job(TOP / "labs/export", "F26", folder / "x.zip", "12",
                       "--gradescope", "--seed", "4711")
        with zipfile.ZipFile(folder / "x.zip") as archive:
            archive.extractall(folder / "source")
            for info in archive.infolist():
                (folder / "source" / info.filename).chmod(info.external_attr >> 16)
        (folder / "submission").mkdir()
        for name, score in (("none.c", 0), ("pipe.c", floor_of(its.folder))):
            (folder / "submission" / name).write_text(text)
            done = run_job("env", f"AUTOGRADER={folder}",
                           folder / "source/run_autograder")
            result = json.loads((folder / "results/results.json").read_text())
            if result["score"] != score or (score == 0) != ("try: cp" in
                                                            result["output"]):
                complaints.append(f"Gradescope, {name}: {result}: {said}: {done}")
    return complaints


def judge_no_filter(out):
    """On a machine without a filter of system calls the results say so, and Gradescope
    gets no points."""
    its, complaints = lab.find("12"), []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "build").symlink_to(pathlib.Path(out).resolve())
        run_job(*build.compiler(), TOP / "tests/no_filter.c", "-o", folder / "no_filter")
        for more, ought in (([], (1, floor_of(its.folder))),
                            (["--gradescope", folder / "results.json"], (2, 0))):
            status, said = run_job(folder / "no_filter", TOP / "labs/grade", "12",
                                   its.folder / "skeleton.c", "--out", folder, *more)
            path = folder / ("results.json" if more else "12/results.json")
            result = json.loads(path.read_text()) if path.exists() else {"score": None}
            if (status, result["score"]) != ought or "no filter" not in said or \
                    result["extra_data"]["filter"]:
                complaints.append(f"without a filter: status {status}, {result}: {said}")
    return complaints


# What the handouts allow: a right solution is not refused for it, by any compiler.
HELPFUL = r'''#include "labs/04-ring/ring.h"
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t ring_bytes(size_t n, int rank, int workers, enum lab_way way)
{
    char text[64], copy[64];
    __int128 wide = (__int128)n * workers / (rank + 1);
    snprintf(text, sizeof text, "%zu %d", n, way);
    strncpy(copy, text, sizeof copy);
    errno = 0;
    if (strrchr(copy, ' ') && isdigit((unsigned char)copy[0]) && strstr(copy, "7"))
        fprintf(stderr, "here\n");
    fputs("here\n", stderr);
    fflush(stderr);
    if (sscanf(text, "%zu", &n) != 1 || errno || memcmp(text, copy, 7) != 0)
        return (size_t)strtol(text, NULL, 10) + (size_t)atoi(copy);
    return (size_t)wide + (size_t)(strtod(text, NULL) + hypot(3, workers) +
           (double)fmaf((float)rank, 2, 1) + cbrt(rank) + log10(n + 1.) + log1p(rank) +
           exp2(rank) + ilogb(n + 1.) + (double)((long double)n / 3));
}

int lab_exchange(struct lab *l, float *v, size_t n)
{
    char text[32];
    sprintf(text, "%zu", n);
    return l->workers + v[0] > strlen(text) ? lab_missing(l, 0, text) : 0;
}
'''


def judge_allowed():
    """Complaints about compilers that use a function that is allowed by another name."""
    its, was, complaints = lab.find("4"), os.environ.get("CC", "cc"), []
    for cc in filter(shutil.which, ("gcc", "clang")):
        for level in ("-O0", "-O1", "-O2"):
            os.environ["CC"] = f"{cc} {level} -fstack-protector-all"
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "helpful.c"
                path.write_text(HELPFUL)
                try:
                    build.Builder(its, folder).take(path, pathlib.Path(folder),
                                                    build.FLAGS[:1] + build.FLAGS[2:])
                except build.Refused as why:
                    complaints.append(f"{os.environ['CC']}: {why}")
    os.environ["CC"] = was
    return complaints


# A ring that sends first: all ranks wait for each other.
SENDS_FIRST = """#include "labs/04-ring/ring.h"
size_t ring_bytes(size_t n, int r, int w, enum lab_way d)
{
    return n + (size_t)r + (size_t)w + d;
}
int lab_exchange(struct lab *l, float *v, size_t n)
{
    int w = l->workers, right = (l->rank + 1) % w, left = (l->rank + w - 1) % w;
    float *in = lab_alloc(l, n, sizeof *in);
    size_t half = n / 2;
    return !in || (w > 1 && (lab_send(l, right, v + half, (n - half) * sizeof *v) ||
                             lab_recv(l, left, in, (n - half) * sizeof *v))) ? -1 : 0;
}
"""


def judge_pages(out):
    """A failed test leaves a page that names the elements of each message and draws a
    deadlock, and in lab 9 the calls and what was lost."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "build").symlink_to(pathlib.Path(out).resolve())
        text = (TOP / "labs/09-resume/reference.c").read_text()
        for number, name, wrong in (
                ("4", "ring.c", SENDS_FIRST),
                ("9", "resume.c", text.replace("err = err || disk_sync_folder(d);", ""))):
            (folder / name).write_text(wrong)
            run_job(TOP / "labs/grade", number, folder / name, "--out", folder)
        # Without its test the file would be left out: the sums are wrong, too.
        run_job(TOP / "labs/grade", "4", folder / "ring.c", "--out", folder / "one",
                "--test", "deadlock")
        found = {
            "04/timeline-sums.html": "rank 0 sends 4 bytes to rank 1: element 0",
            "one/04/timeline-deadlock.html":
                '"circle": [[0, "sends to 1 (message 1)", 1], '
                '[1, "sends to 0 (message 1)", 0]]',
            "09/log-power.txt": "rename unfinished to checkpoint-1                  "
                                "[    ] LOST"}
        return [f"{name} does not say {said!r}" for name, said in found.items()
                if said not in (folder / name).read_text()]


def judge_output():
    """What a test prints can be added to, and not read."""
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "tells-its-flags"
        program.write_text("#!/bin/sh\nits=$(cat /proc/$$/fdinfo/1)\necho $its >flags\n")
        program.chmod(0o700)
        run.run_test(build.Program(program, program), "any")
        text = (pathlib.Path(folder) / "flags").read_text()
    flags = int(text.split("flags:")[1].split()[0], 8)
    if flags & os.O_ACCMODE != os.O_WRONLY or not flags & os.O_APPEND:
        return [f"the output of a test has the flags {flags:o}"]
    return []


def judge_threads(out):
    """A rank's thread sends nothing to another thread, where the grader's own messages are."""
    text = (TOP / "labs/05-overlap/reference.c").read_text()
    text = text.replace("return s->join(l, s);",
                        "return lab_send(l, l->rank + l->workers, s, 4) || s->join(l, s);")
    text = text.replace("    for (int i = 0; i < s->count; i++) {\n        int b;",
                        "    float got;\n    if (lab_recv(l, l->rank - l->workers, &got, 4))\n"
                        "        return -1;\n    for (int i = 0; i < s->count; i++) {\n"
                        "        int b;")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "build").symlink_to(pathlib.Path(out).resolve())
        (folder / "overlap.c").write_text(text)
        said = run_job(TOP / "labs/grade", "5", folder / "overlap.c", "--out", folder)[1]
    return [] if "the ranks are 0 to" in said else [f"a message to another thread: {said}"]


def judge_waiting():
    """A test whose processes all sleep ends early, and one that works does not."""
    complaints, was = [], run.STUCK_S
    run.STUCK_S = 3
    with tempfile.TemporaryDirectory() as folder:
        for words, ended in (("exec sleep 600", True),
                             ("for i in 1 2 3 4 5 6 7; do sleep 1; expr 1 : 1; done", False)):
            program = pathlib.Path(folder) / "waits"
            program.write_text(f"#!/bin/sh\n{words}\n")
            program.chmod(0o700)
            result = run.run_test(build.Program(program, program), "any")
            if ("did nothing" in result.said) != ended or result.seconds > 60:
                complaints.append(f"{words}: {result.seconds} s: {result.said}")
    run.STUCK_S = was
    return complaints


def judge_orphans():
    """A process that a test started ends when the test ends."""
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "starts-another"
        program.write_text("#!/bin/sh\nsleep 600 &\necho $! >pid\n")
        program.chmod(0o700)
        run.run_test(build.Program(program, program), "any")
        pid = int((pathlib.Path(folder) / "pid").read_text())
        status = pathlib.Path(f"/proc/{pid}/status")
        for _ in range(300):
            if not status.exists() or "State:\tZ" in status.read_text():
                return []
            time.sleep(0.1)
        os.kill(pid, signal.SIGKILL)
    return [f"process {pid} outlives the test that started it"]


def judge_cheats(out):
    its = lab.find("4")
    builder = build.Builder(its, out)
    builder.judge(), builder.around()
    return at_once(functools.partial(judge_cheat, its, out), list(CHEATS))


def main():
    out = sys.argv[1]
    complaints = judge_cheats(out) + judge_guard() + judge_waiting() + judge_threads(out) + judge_orphans() + judge_output()
    complaints += labs_grader.judge_grader(out)
    complaints += judge_allowed() + judge_pages(out)
    complaints += judge_commands() + judge_batch(out) + judge_gradescope()
    complaints += judge_no_filter(out)
    print("\n".join(complaints) or "cheats: passed")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())

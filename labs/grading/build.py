"""build.py - build the program that runs one test, from a student's file.

Only that one file is taken. It is refused if it includes, defines or calls anything that
is not allowed: the list of allowed functions is short. Needs only Python's standard
library, binutils and a C compiler.
"""

import collections
import hashlib
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import tempfile

from . import rules

TOP = pathlib.Path(__file__).resolve().parents[2]
# The grader's program, and the program around a student's file. Each lab adds its
# grade.c and ask.c to the first, its answer.c to the second.
JUDGE = ["core/base/error.c", "core/virtual/*.c", "labs/ask.c", "labs/check.c",
         "labs/disk.c", "labs/lab.c", "labs/machine.c", "labs/message.c"]
AROUND = ["core/base/error.c", "labs/answer.c", "labs/lab.c", "labs/message.c",
          "labs/sandbox.c"]
HEADERS = ["core/base/*.h", "core/virtual/*.h", "labs/*.h"]
# The comments in which a case falls through do not outlive the preprocessor.
KIND = ["-std=gnu11", "-O1", "-g", "-ffp-contract=off", "-Wall", "-Wextra",
        "-Wno-implicit-fallthrough", "-D_GNU_SOURCE"]
FLAGS = KIND + [f"-I{TOP}", f"-I{TOP / 'core'}"]
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all",
            "-fno-omit-frame-pointer"]
LIBRARIES = ["-lpthread", "-lm"]
PLAIN = "plain.i"  # a student's file after the preprocessor
MOST = 1 << 20  # bytes of a file that is handed in
MOST_PLAIN = 1 << 22  # after the preprocessor
WALL_S = 60  # a file may include one that never ends and takes no processor time


Refused = rules.Refused

# What grades a file: the grader's program, and the program around the file.
Program = collections.namedtuple("Program", "judge file")


def compiler():
    return os.environ.get("CC", "cc").split()


def run(words, **more):
    return subprocess.run(words, capture_output=True, text=True, errors="replace",
                          check=False, timeout=600, **more)


def handed_in(path):
    """The bytes of a file that was handed in. Raises Refused if it is no regular file of
    at most MOST bytes: to open another one may take for ever."""
    path = pathlib.Path(path)
    if not os.path.lexists(path):
        raise Refused(f"{path} is not there")
    if path.is_symlink() or not path.is_file():
        raise Refused(f"{path} is not a regular file")
    if path.stat().st_size > MOST:
        raise Refused(f"{path} is longer than {MOST} bytes")
    return path.read_bytes()


def limit():
    """Limit this process, which compiles a student's file, and its children."""
    for what, most in ((resource.RLIMIT_CPU, 10), (resource.RLIMIT_FSIZE, 1 << 26),
                       (resource.RLIMIT_AS, 1 << 32)):
        resource.setrlimit(what, (most, most))


def compile_limited(words, folder):
    """(status, output, errors) of a compiler run, under limits: the file may try to use up
    time or memory."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(compiler() + words, cwd=folder, stdout=out, stderr=err,
                                   stdin=subprocess.DEVNULL, preexec_fn=limit,
                                   start_new_session=True)
        try:
            status = process.wait(timeout=WALL_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            status = process.wait()
        texts = []
        for f, most in ((out, 1 << 26), (err, 1 << 14)):
            f.seek(0)
            texts.append(f.read(most).decode(errors="replace").rstrip())
    return status, *texts


def sources(patterns):
    return [p for pattern in patterns for p in sorted(TOP.glob(pattern))]


def unquoted(path):
    """A path as gcc quotes it: some bytes are octal numbers."""
    plain = re.sub(rb"\\([0-7]{3}|.)",
                   lambda m: bytes([int(m[1], 8)]) if m[1].isdigit() else m[1],
                   os.fsencode(path))
    return os.fsdecode(plain)


class Builder:
    """Builds for one lab; keeps the grader's objects in `out`. `top`: a folder whose
    labs/term.h takes the place of this tree's."""

    def __init__(self, lab, out, top=TOP):
        self.lab, self.out, self.top = lab, pathlib.Path(out).resolve(), top
        self.out.mkdir(parents=True, exist_ok=True)
        self.sanitize = SANITIZE if self.can_sanitize() else []

    def can_sanitize(self):
        """Whether the compiler has the sanitizers' libraries."""
        known = self.out / "sanitizers"
        if not known.exists():
            probe = self.out / f"probe-{os.getpid()}"
            source, answer = probe.with_suffix(".c"), probe.with_suffix(".txt")
            source.write_text("int main(void) { return 0; }\n")
            done = run(compiler() + SANITIZE + [str(source), "-o", str(probe)])
            answer.write_text("no" if done.returncode else "yes")
            answer.rename(known)  # at once: another process may read it
            for path in (probe, source):
                path.unlink(missing_ok=True)
        return known.read_text() == "yes"

    def compile_once(self, name, files, flags, own, others=None):
        """The folder with the objects of these files and, with the objects `others`,
        their program. Compile them unless `out` has them already. `own`: headers that
        they need besides those of all labs."""
        words = [f"-I{self.top}"] + FLAGS + flags
        # The place of the tree does not count: another tree may use the same objects.
        seen = hashlib.sha256(" ".join(compiler() + KIND + flags).encode())
        headers = [path for path in sources(HEADERS) if path.name != "term.h"]
        for path in files + headers + own + (others or []):
            seen.update(path.read_bytes())
        folder = self.out / f"{name}-{seen.hexdigest()[:16]}"
        if folder.is_dir():
            return folder
        fresh = self.out / f"{folder.name}.{os.getpid()}"
        fresh.mkdir()
        done = run(compiler() + words + ["-c"] + [str(f) for f in files], cwd=fresh)
        if not done.returncode and others:
            objects = sorted(fresh.glob("*.o")) + others
            done = run(compiler() + words + [str(o) for o in objects] +
                       ["-o", "program"] + LIBRARIES, cwd=fresh)
        if done.returncode:
            raise Refused(f"the grader does not compile:\n{done.stderr}")
        try:
            fresh.rename(folder)
        except OSError:  # another process was faster
            shutil.rmtree(fresh)
        return folder

    def headers(self):
        return sorted(self.lab.folder.glob("*.h"))

    def judge(self):
        """The grader's program."""
        number = f"{self.lab.number:02}"
        folders = [self.compile_once("judge", sources(JUDGE), [], []),
                   self.compile_once(f"ask-{number}", [self.lab.folder / "ask.c"], [],
                                     self.headers())]
        return self.compile_once(f"lab-{number}", [self.lab.folder / "grade.c"], [],
                                 self.headers() + [self.top / "labs/term.h"],
                                 [o for folder in folders
                                  for o in sorted(folder.glob("*.o"))]) / "program"

    def around(self):
        """The objects of the program around a student's file."""
        folders = [self.compile_once("around", sources(AROUND), self.sanitize, []),
                   self.compile_once(f"answer-{self.lab.number:02}",
                                     [self.lab.folder / "answer.c"], self.sanitize,
                                     self.headers())]
        return [str(o) for folder in folders for o in sorted(folder.glob("*.o"))]

    def take(self, path, folder, flags):
        """Copy a student's file to the folder, and refuse it if it uses anything that is
        not allowed. Return the compiler's warnings. What is compiled is PLAIN, the text
        that was judged: with a sanitizer the preprocessor could choose other lines."""
        name, words = self.lab.file, folder / "plain.s"
        (folder / name).write_bytes(handed_in(path))
        with rules.limited(name):
            (folder / PLAIN).write_text(self.judge_source(folder, name))
        status, _, warnings = compile_limited(
            flags + self.lab.flags() + ["-S", PLAIN, "-o", str(words)], folder)
        if status:
            raise Refused(f"{name} does not compile:\n{warnings}")
        # Compilers mark inline assembler in their output.
        if re.search(r"^\s*(#|//|@)+ ?(APP|InlineAsm Start)",
                     words.read_text(errors="replace"), re.M):
            raise Refused(f"{name} uses inline assembler")
        self.judge_object(folder, words, name)
        return warnings

    def build_shared(self, path, folder, out):
        """Build a shared object with lab_exchange(), for sync=lab."""
        folder = pathlib.Path(folder)
        self.take(path, folder, FLAGS)
        status, _, errors = compile_limited(
            FLAGS + ["-O2", "-fPIC", "-shared", PLAIN,
                     str(TOP / "labs/lab.c"), "-o", str(out), "-lm"], folder)
        if status:
            raise Refused(f"{self.lab.file} does not link:\n{errors}")

    def build(self, path, folder, werror=False):
        """(program, warnings) of a student's file, built in this folder."""
        folder, name = pathlib.Path(folder), self.lab.file
        flags = FLAGS + (["-Werror"] if werror else [])
        warnings = self.take(path, folder, flags)
        program = folder / "program"
        status, _, errors = compile_limited(flags + self.sanitize + ["-c", PLAIN], folder)
        if not status:
            self.judge_symbols(folder / "plain.o", name, rules.SANITIZERS)
            status, _, errors = compile_limited(
                self.sanitize + ["plain.o"] + self.around() + ["-o", str(program)] +
                LIBRARIES, folder)
        if status:
            raise Refused(f"{name} does not link:\n{errors}")
        return Program(self.judge(), program), warnings

    def judge_source(self, folder, name):
        """Return the preprocessed file. Refuse forbidden includes and words. This comes before the first message of the
        compiler is shown, which could quote an included file."""
        rules.judge_directives((folder / name).read_text(errors="replace"), name)
        own = [str(TOP / path) for path in ("labs/lab.h", "labs/disk.h",
                                            "core/base/half.h")]
        own += [str(self.lab.folder / self.lab.header())]
        status, text, errors = compile_limited(FLAGS + ["-E", name], folder)
        for path in sorted(set(re.findall(r'^# \d+ "([^<].*?)"', text, re.M))):
            path = unquoted(path)
            real = os.path.realpath(folder / path)
            system = real.startswith(("/usr/", "/nix/", "/opt/")) and \
                real.endswith(".h")
            if not (system or real in own or path == name or
                    os.path.isdir(real)):
                raise Refused(f"{name} includes {path}; try: labs/lab.h, the "
                              "lab's own header and the C library's")
        if status:
            raise Refused(f"{name} does not compile:\n{errors}")
        if len(text) > MOST_PLAIN:
            raise Refused(f"{name} becomes longer than {MOST_PLAIN} bytes by its macros and "
                          "includes; try: functions")
        rules.judge_words(text, name)
        return text

    def judge_symbols(self, path, name, more=()):
        """Refuse forbidden calls and definitions in an object. `more`: allowed names."""
        # A named target keeps nm from loading LLVM as its plugin, which takes 15 ms.
        listed = run(["nm", "--target=default", str(path)])
        if listed.returncode:
            raise Refused(f"nm: {listed.stderr.strip()}; try: install binutils")
        source = (path.parent / name).read_text(errors="replace")
        rules.judge_symbols(listed.stdout, name, source, self.lab, more)

    def judge_object(self, folder, words, name):
        """Refuse forbidden calls, definitions, loader features and static variables."""
        path = folder / "plain.o"
        status, _, errors = compile_limited(["-c", words.name, "-o", path.name], folder)
        if status:
            raise Refused(f"{name} does not compile:\n{errors}")
        self.judge_symbols(path, name)
        rules.judge_sections(run(["objdump", "-h", "-w", str(path)]).stdout, name)

"""build.py - build the program that runs one test, from a student's file.

Only that one file is taken. It is refused if it includes, defines or calls anything that
is not allowed: the list of allowed functions is short. Needs only Python's standard
library, binutils and a C compiler.
"""

import fnmatch
import hashlib
import os
import pathlib
import re
import resource
import shutil
import subprocess
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
HARNESS = ["core/base/error.c", "core/virtual/*.c", "labs/*.c"]
HEADERS = ["core/base/*.h", "core/virtual/*.h", "labs/*.h"]
FLAGS = ["-std=gnu11", "-O1", "-g", "-ffp-contract=off", "-Wall", "-Wextra",
         "-D_GNU_SOURCE", f"-I{TOP}", f"-I{TOP / 'core'}"]
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all",
            "-fno-omit-frame-pointer"]
LIBRARIES = ["-lpthread", "-lm"]
MOST = 1 << 20  # bytes of a file that is handed in

# The functions that a lab's file may call. The grader's own are not among them.
ALLOWED = """
    lab_send lab_recv lab_recv_any lab_isend lab_irecv lab_wait lab_now
    lab_compute lab_alloc lab_missing
    disk_create disk_open disk_write disk_read disk_sync disk_close disk_rename
    disk_remove disk_sync_folder disk_list
    memcpy memmove memset memcmp memchr strlen strcmp strncmp strchr strcpy
    abs labs qsort bsearch
    printf fprintf puts putchar fputs fputc snprintf vprintf vfprintf
    vsnprintf stdout stderr
    fabs fabsf sqrt sqrtf floor floorf ceil ceilf fmin fminf fmax fmaxf exp expf
    log logf log2 log2f pow powf round roundf lround lroundf rint rintf lrint
    lrintf ldexp ldexpf frexp frexpf scalbn scalbnf nearbyint nearbyintf
    trunc truncf fmod fmodf isnan copysign copysignf
    __assert_fail __stack_chk_fail __stack_chk_guard __*_chk
    _GLOBAL_OFFSET_TABLE_ __*tf2 __*tf3 __*tf[sd]f2 __fix*tf[sd]i __float*itf
    __isnan __isnanf __isinf __isinff __finite __finitef
""".split()
SECTIONS = """.text* .data* .bss* .rodata* .eh_frame* .comment* .note* .debug*
    .group* .llvm* .tdata* .tbss*""".split()
VARIABLES = ".data* .bss* .tdata* .tbss*".split()


class Refused(Exception):
    """The file cannot be graded; the text says why."""


def compiler():
    return os.environ.get("CC", "cc").split()


def run(words, **more):
    return subprocess.run(words, capture_output=True, text=True, errors="replace",
                          check=False, **more)


def limit():
    """Limit this process, which compiles a student's file, and its children."""
    for what, most in ((resource.RLIMIT_CPU, 10), (resource.RLIMIT_FSIZE, 1 << 26),
                       (resource.RLIMIT_AS, 1 << 32)):
        resource.setrlimit(what, (most, most))


def compile_limited(words, folder):
    """(status, output, errors) of a compiler run, under limits: the file may try to use up
    time or memory."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        status = subprocess.run(compiler() + words, cwd=folder, stdout=out,
                                stderr=err, stdin=subprocess.DEVNULL, check=False,
                                preexec_fn=limit).returncode
        texts = []
        for f, most in ((out, 1 << 26), (err, 1 << 14)):
            f.seek(0)
            texts.append(f.read(most).decode(errors="replace").rstrip())
    return status, *texts


def fits(name, patterns):
    return any(fnmatch.fnmatchcase(name, p) for p in patterns)


def sources(patterns):
    return [p for pattern in patterns for p in sorted(TOP.glob(pattern))]


class Builder:
    """Builds for one lab; keeps the grader's objects in `out`. `ours`: the file is a
    reference, or a change of one, and may include term.h."""

    def __init__(self, lab, out, ours=False):
        self.lab, self.out, self.ours = lab, pathlib.Path(out).resolve(), ours
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

    def compile_once(self, name, files, headers):
        """The objects of these files. Compile them unless `out` has them already."""
        seen = hashlib.sha256(" ".join(compiler() + self.sanitize).encode())
        for path in files + headers:
            seen.update(path.read_bytes())
        folder = self.out / f"{name}-{seen.hexdigest()[:16]}"
        if not folder.is_dir():
            fresh = self.out / f"{folder.name}.{os.getpid()}"
            fresh.mkdir()
            done = run(compiler() + FLAGS + self.sanitize + ["-c"] +
                       [str(f) for f in files], cwd=fresh)
            if done.returncode:
                raise Refused(f"the grader does not compile:\n{done.stderr}")
            try:
                fresh.rename(folder)
            except OSError:  # another process was faster
                shutil.rmtree(fresh)
        return sorted(folder.glob("*.o"))

    def harness(self):
        """The objects of all files but the student's: the files that all labs share, and
        this lab's grade.c."""
        headers = sources(HEADERS)
        own = sorted(self.lab.folder.glob("*.h"))
        return self.compile_once("harness", sources(HARNESS), headers) + \
            self.compile_once(f"lab-{self.lab.number:02}",
                              [self.lab.folder / "grade.c"], headers + own)

    def take(self, path, folder, flags):
        """Copy a student's file to the folder, and refuse it if it uses anything that is
        not allowed. Return the compiler's warnings."""
        path = pathlib.Path(path)
        if path.is_symlink() or not path.is_file():
            raise Refused(f"{path} is not a regular file")
        if path.stat().st_size > MOST:
            raise Refused(f"{path} is longer than {MOST} bytes")
        (folder / self.lab.file).write_bytes(path.read_bytes())
        name, words = self.lab.file, folder / "plain.s"
        self.judge_includes(folder, name)
        status, _, warnings = compile_limited(
            flags + ["-S", name, "-o", str(words)], folder)
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
            FLAGS + ["-O2", "-fPIC", "-shared", self.lab.file,
                     str(TOP / "labs/lab.c"), "-o", str(out), "-lm"], folder)
        if status:
            raise Refused(f"{self.lab.file} does not link:\n{errors}")

    def build(self, path, folder, werror=False):
        """(program, warnings) of a student's file, built in this folder."""
        folder, name = pathlib.Path(folder), self.lab.file
        flags = FLAGS + (["-Werror"] if werror else [])
        warnings = self.take(path, folder, flags)
        program = folder / "program"
        status, _, errors = compile_limited(
            flags + self.sanitize + [name] +
            [str(o) for o in self.harness()] +
            ["-o", str(program)] + LIBRARIES, folder)
        if status:
            raise Refused(f"{name} does not link:\n{errors}")
        return program, warnings

    def judge_includes(self, folder, name):
        """Refuse forbidden includes. This comes before the first message of the compiler
        is shown, which could quote an included file."""
        own = [str(TOP / path) for path in ("labs/lab.h", "labs/disk.h",
                                            "core/base/half.h")]
        own += [str(p) for p in sorted(self.lab.folder.glob("*.h"))]
        if self.ours:
            own.append(str(TOP / "labs/term.h"))
        status, text, errors = compile_limited(FLAGS + ["-E", name], folder)
        for path in sorted(set(re.findall(r'^# \d+ "([^<].*?)"', text, re.M))):
            real = os.path.realpath(folder / path)
            system = real.startswith(("/usr/", "/nix/", "/opt/")) and \
                real.endswith(".h")
            if not (system or real in own or path == name or
                    os.path.isdir(real)):
                raise Refused(f"{name} includes {path}; try: labs/lab.h, the "
                              "lab's own header and the C library's")
        if status:
            raise Refused(f"{name} does not compile:\n{errors}")

    def judge_object(self, folder, words, name):
        """Refuse forbidden calls, definitions, loader features and static variables."""
        path = folder / "plain.o"
        run(compiler() + ["-c", str(words), "-o", str(path)])
        listed = run(["nm", str(path)])
        if listed.returncode:
            raise Refused(f"nm: {listed.stderr.strip()}; try: install binutils")
        wanted, found = self.lab.functions, []
        for line in listed.stdout.splitlines():
            kind, symbol = line.split()[-2:]
            if kind in "Uwv" and not fits(symbol, ALLOWED):
                raise Refused(f"{name} uses {symbol}, which a lab's file may not; "
                              "try: lab_*, mem*, str*, printf, <math.h>")
            if kind in "iu":
                raise Refused(f"{name} defines {symbol}, a symbol for the loader; try: "
                              "a plain function")
            if kind.isupper() and kind != "U" and symbol not in wanted:
                raise Refused(f"{name} defines {symbol}; try: make it static")
            if kind == "T":
                found.append(symbol)
        for symbol in wanted:
            if symbol not in found:
                raise Refused(f"{name} does not define {symbol}()")
        headers = run(["objdump", "-h", "-w", str(path)]).stdout
        found = re.findall(r"^ *\d+ (\S+) +([0-9a-f]+) ", headers, re.M)
        for section, _ in found:
            if not fits(section, SECTIONS):
                raise Refused(f"{name} has code that runs before main ({section})")
        for section, size in found:
            if fits(section, VARIABLES) and int(size, 16) and \
                    not section.startswith(".data.rel.ro"):
                raise Refused(f"{name} has static variables: all ranks of the virtual "
                              "cluster would share them, and real workers do not; try: "
                              "local variables, lab_alloc(), static const")

"""Compiles the C files of the product with the headers of another C library, musl, and
those outside labs/ as strict C11, too.

    musl.py BUILD FOLDER

BUILD has compile_commands.json. The test downloads Debian's package musl-dev into
FOLDER and unpacks it there. It does not link: Debian has no other library for musl.
Exit status 77, with a line that says why, if the package cannot be downloaded.
"""

import concurrent.futures
import json
import pathlib
import shlex
import subprocess
import sys

from unpacked import unpack

BUILD, CACHE = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
# The headers of the libraries are beside those of the usual C library, which must
# not be found: links to them alone are in a folder of their own.
LIBRARIES = """linux asm asm-generic zmq.h sodium* dnnl* oneapi ini.h cjson utf8proc.h
    xxhash.h hwloc*""".split()
NOT_PRODUCT = ("tests/", "simulate/", "CMakeFiles/")


def skip(why):
    print(f"musl: SKIPPED: {why}")
    sys.exit(77)


def gcc_says(word):
    return subprocess.run(["gcc", word], capture_output=True, text=True,
                          check=True).stdout.strip()


def link_libraries(folder, include):
    folder.mkdir(exist_ok=True)
    for pattern in LIBRARIES:
        for path in include.glob(pattern):
            if not (folder / path.name).exists():
                (folder / path.name).symlink_to(path)
    return "-isystem", folder


def main():
    root = unpack(CACHE, ["musl-dev"], skip)
    headers = next(root.glob("usr/include/*-linux-musl"))
    usual, machine = pathlib.Path("/usr/include"), gcc_says("-print-multiarch")
    commands = json.loads((BUILD / "compile_commands.json").read_text())
    source = pathlib.Path(__file__).resolve().parent.parent
    wanted, included = {}, {}
    for one in commands:
        name = str(pathlib.Path(one["file"]).relative_to(source))
        if name.endswith(".c") and not name.startswith(NOT_PRODUCT) and \
                "simulate_job.dir" not in one["command"]:
            wanted[name] = [word for word in shlex.split(one["command"])
                            if word.startswith(("-D", "-I", "-std", "-m", "-fopenmp"))]
            said = shlex.split(one["command"])
            included[name] = [f"-isystem{folder}" for word, folder in
                              zip(said, said[1:]) if word == "-isystem"]
    strict = ["gcc", "-fsyntax-only", "-std=c11", "-pedantic-errors"]
    words = ["gcc", "-fsyntax-only", "-nostdinc", "-isystem", headers,
             "-isystem", gcc_says("-print-file-name=include"),
             *link_libraries(CACHE / "libraries", usual),
             *link_libraries(CACHE / "of_machine", usual / machine),
             "-isystem", f"/usr/lib/{machine}/openmpi/include",
             "-Werror=implicit-function-declaration"]

    def compiled(name):
        own = [word for word in wanted[name] if not word.startswith("-std")]
        both = [[*words, *wanted[name]]]
        if not name.startswith("labs/"):
            both.append([*strict, *included[name], *own])
        return [subprocess.run([*one, source / name], check=False, capture_output=True,
                               text=True) for one in both]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        bad = [done.stderr for both in pool.map(compiled, wanted) for done in both
               if done.returncode]
    print(*bad, f"{len(wanted)} files, {len(bad)} do not compile", sep="\n")
    assert len(wanted) > 200 and not bad


main()

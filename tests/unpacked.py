"""Unpacks Debian's packages into a folder, without installing them.

The system stays as it is. A test that needs a program of a package runs it from
that folder.
"""

import shutil
import subprocess


def download(folder, packages, *more):
    return subprocess.run(
        ["apt-get", "install", "--download-only", "--reinstall", "-y", "-q",
         "--no-install-recommends", "-o", "Debug::NoLocking=1", "-o",
         f"Dir::Cache={folder}", "-o", f"Dir::Cache::archives={folder}/archives",
         *more, *packages],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)


def unpack(folder, packages, skip):
    """Unpacks the packages below folder/root, and returns that folder. Calls
    skip(why) if they cannot be downloaded."""
    root = folder / "root"
    if (root / "complete").exists():
        return root
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        skip(f"no apt-get to download Debian's {packages[0]} with")
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "archives" / "partial").mkdir(parents=True)
    done = download(folder, packages)
    if done.returncode:  # there may be no lists of packages yet, or old ones
        lists = ["-o", f"Dir::State::lists={folder}/lists"]
        (folder / "lists" / "partial").mkdir(parents=True)
        subprocess.run(["apt-get", "update", "-q", "-o", "Debug::NoLocking=1",
                        *lists], capture_output=True, timeout=300)
        done = download(folder, packages, *lists)
    if done.returncode:
        skip(f"Debian's {packages[0]} cannot be downloaded: " +
             (done.stderr.strip().splitlines() or ["?"])[-1])
    for package in sorted((folder / "archives").glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", package, root], check=True)
    (root / "complete").touch()
    return root

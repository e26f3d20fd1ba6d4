#!/usr/bin/env python3
"""explain.py BIN pages|browser - tests the pages of lockstep explain and of labs/grade.

pages    A page needs nothing outside of it. The bytes of its messages add up to the law.
         A backend that cannot be explained is refused in one line.
browser  In headless Chromium pages have no error, their counters reach the law, and
         playing, seeking and single steps work.
"""

import base64
import hashlib
import html
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

TOP = pathlib.Path(__file__).resolve().parent.parent
WAYS = [["ring", "workers=4", "n=10"], ["ring", "workers=16", "n=1000"],
        ["zero", "workers=3"], ["dataparallel", "workers=4"],
        ["sps", "workers=3"], ["dps", "workers=4"],
        ["dps", "workers=2", "update=worker"], ["dps", "workers=3", "servers=2"],
        ["all_reduce", "workers=2"], ["reduce_scatter", "workers=5", "n=3"],
        ["all_gather", "workers=3"], ["broadcast", "workers=5"],
        ["reduce", "workers=3"], ["broadcast", "algorithm=tree", "workers=7"],
        ["scatter", "algorithm=tree", "workers=6"],
        ["gather", "algorithm=linear", "workers=4"],
        ["reduce", "algorithm=chain", "workers=4"],
        ["all_reduce", "algorithm=tree", "workers=5"],
        ["all_reduce", "algorithm=chain", "workers=3"],
        ["all_reduce", "algorithm=halving", "workers=8", "n=24"],
        ["all_reduce", "algorithm=doubling", "workers=4"]]
EXACT = [["ring", "workers=4", "n=12"], ["zero", "workers=2"],
         ["dataparallel", "workers=5"], ["sps", "workers=3"],
         ["dps", "workers=4", "n=12"], ["broadcast", "algorithm=tree", "workers=8"],
         ["reduce", "algorithm=chain", "workers=4"],
         ["gather", "algorithm=tree", "workers=4", "n=12"],
         ["all_reduce", "algorithm=tree", "workers=4"],
         ["all_reduce", "algorithm=halving", "workers=16"],
         ["all_reduce", "algorithm=doubling", "workers=8"]]
REFUSED = [["allreduce"], ["local"], ["nothing"], ["scatter"], ["ring", "workers=1"],
           ["gather", "algorithm=chain"], ["scatter", "algorithm=halving"],
           ["reduce_scatter", "algorithm=tree"], ["ring", "wrokers=4"],
           ["all_reduce", "algorithm=halving", "workers=6"],
           ["all_reduce", "algorithm=halving", "n=10"], ["ring", "algorithm=tree"],
           ["ring", "servers=2"], ["sps", "servers=2"], ["broadcast", "update=worker"],
           ["broadcast", "algorithm=tree", "piece=3"], ["ring", "out="],
           ["ring", "out=/dev/null"], ["ring", "out=."]]
SKIPPED = 77


def run(*words, status=0):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True,
                          check=False)
    assert done.returncode == status, (words, done.stdout, done.stderr)
    return done.stdout + done.stderr


def data_of(page):
    """The data in the page. The page must not refer to anything outside of it."""
    text = page.read_text()
    assert text.count('id="data"') == 1
    for outside in (r"https?:", r"\bsrc\s*=", r"\bhref\s*=", r"url\(", r"@import",
                    r"\bimport\b", r"\bfetch\("):
        found = re.search(outside, text)
        assert not found, (page, found)
    return json.loads(re.search(
        r'<script id="data" type="application/json">(.*?)</script>', text, re.S)[1])


def check_policy():
    """Only the page's own script may run: the policy has its hash."""
    text = (TOP / "core/virtual/page.html").read_text()
    script, = re.findall(r"<script>(.*?)</script>", text, re.S)
    digest = hashlib.sha256(script.encode()).digest()
    own = f"'sha256-{base64.b64encode(digest).decode()}'"
    said = re.search(r"script-src ([^;]*);", text)[1]
    assert said == own, f"core/virtual/page.html: its script-src must be {own}"


def check_sums(panel):
    """The bytes that each rank sends and receives are those of the law."""
    moved = {rank: {"out": 0, "in": 0} for rank in panel["law"]}
    for event in panel["trace"]["traceEvents"]:
        args = event.get("args", {})
        if event["ph"] == "X" and not args.get("free"):
            way = "out" if "to" in args else "in"
            moved[str(event["pid"])][way] += args["bytes"]
    assert moved == panel["law"], (moved, panel["law"])


def check_cells(panel):
    """Every message says what it holds. Return the last contents, by rank, vector
    and cell, and the number that is the sum of all workers' numbers."""
    cells, last = panel["cells"], {}
    for at, rank, vector, cell, holds in cells["states"]:
        assert at <= panel["end_us"] + 1e-3
        last[rank, vector, cell] = holds
    sends = [e["args"] for e in panel["trace"]["traceEvents"]
             if e["ph"] == "X" and "to" in e["args"]]
    assert sends and all(a["says"] for a in sends)
    return last, 2 ** cells["ranks"] - 1


def full_disk(bin_dir, folder):
    """A page that cannot be written as a whole leaves the old one, or none, and nothing
    is printed."""
    full = folder / "full"
    full.mkdir()
    for old in None, "the old page":
        if old:
            (full / "way.html").write_text(old)
        said = run("prlimit", "--fsize=5000", bin_dir / "lockstep", "explain", "ring",
                   f"out={full}/way.html", status=1)
        assert said.endswith("way.html: File too large\n"), said
        assert said.count("\n") == 1, said
        assert [f.read_text() for f in full.iterdir()] == [old] * bool(old)


def pages(bin_dir, folder):
    """Test pages without a browser."""
    check_policy()
    for words in WAYS:
        page = folder / "way.html"
        said = run(bin_dir / "lockstep", "explain", *words, f"out={page}")
        panel = data_of(page)["panels"][0]
        check_sums(panel)
        last, every = check_cells(panel)
        workers = panel["cells"]["ranks"]
        if words[0] in ("ring", "all_reduce"):
            assert all(last[r, 0, c] == every for r, v, c in last if v == 0)
        if words[0] in ("sps", "dps", "zero", "dataparallel"):
            of = 0 if "update=worker" in words else 1
            assert all(last[r, of, c] == every for r, v, c in last
                       if v == of and r < workers)
        assert "the law" in said and "worker 1 " in said
    for words in EXACT:
        said = run(bin_dir / "lockstep", "explain", *words, f"out={folder}/way.html")
        took, law = re.search(r"^([\d.]+) us .*the law: ([\d.]+) us$", said, re.M)\
            .groups()
        assert took == law, (words, took, law)
    said = run(bin_dir / "lockstep", "explain", *WAYS[0], f"out={folder}/way.html")
    assert "chunks of 2.5 elements each; here the longest has 3." in said
    for words in REFUSED:
        said = run(bin_dir / "lockstep", "explain", words[0], f"out={folder}/no.html",
                   *words[1:], status=1)
        assert said.count("\n") == 1, said
        assert not (folder / "no.html").exists()
        tried = re.search(r"there is no .*; try: (algorithm=\w+)", said)
        if tried:
            run(bin_dir / "lockstep", "explain", words[0], tried[1],
                f"out={folder}/way.html")
    full_disk(bin_dir, folder)
    said = run(bin_dir / "lockstep", "explain", "--help")
    assert "lockstep explain RUN" in said and "broadcast" in said


def train(bin_dir, folder, name, *words):
    out = folder / name
    run(bin_dir / "lockstep", "train", f"data={TOP}/README.md", "model=nano",
        "layers=1", "channels=32", "context=16", "batch=2", "steps=5", "threads=1",
        f"out={out}", *words)
    return out


def bytes_of_step(panel, rank):
    """The bytes that a worker sent and received in its step, by the spans."""
    spans = [e for e in panel["trace"]["traceEvents"]
             if e["ph"] == "X" and e["pid"] == rank]
    step, = [e for e in spans
             if e["name"] == "step" and e["args"]["step"] == panel["step"]]
    own = [e for e in spans if step["ts"] <= e["ts"] < step["ts"] + step["dur"]]
    return {way: sum(e["args"]["bytes"] for e in own if e["name"] == name)
            for way, name in (("out", "send"), ("in", "receive"))}


def run_page(bin_dir, folder):
    """Test a page of several runs."""
    page = folder / "runs.html"
    runs = [train(bin_dir, folder, "a=b", "sync=ring", "workers=2", "transport=tcp"),
            train(bin_dir, folder, "alone", "sync=local"),
            train(bin_dir, folder, "parts", "sync=zero", "shard=3", "workers=2")]
    svg = folder / "runs.svg"
    for again in False, True:  # the second says that it replaces the first
        said = run(bin_dir / "lockstep", "explain", *runs, "step=3", f"out={page}",
                   f"svg={svg}")
        assert said.count("replacing the existing file") == 2 * again, said
    drawn = xml.etree.ElementTree.parse(svg).getroot()
    tags = [element.tag.split("}")[1] for element in drawn.iter()]
    assert tags.count("animate") == 2 and tags.count("rect") > 30
    assert not re.search(r"href|url\((?!#)|script", svg.read_text())
    ring, alone, parts = data_of(page)["panels"]
    assert "shard=3" in parts["name"] and "law" in parts
    assert svg.read_text().count("'#d9d9d9'") > 1  # one in the legend, one a wait
    assert set(ring["law"]) == set(ring["total"]) == {"0", "1"}
    for rank, law in ring["law"].items():  # chunks have whole elements; no norm is sent
        assert abs(ring["total"][rank]["out"] - law["out"]) <= 4 * 8
    for rank, total in ring["total"].items():
        assert bytes_of_step(ring, int(rank)) == total, (rank, total)
    assert "law" not in alone
    for panel in ring, alone, parts:
        spans = [e for e in panel["trace"]["traceEvents"] if e["ph"] == "X"]
        steps = [e for e in spans if e["name"] == "step"]
        assert {e["args"]["step"] for e in steps} >= {3}
        assert {"forward", "backward", "update"} <= {e["name"] for e in spans}
        assert all(e["ts"] < panel["end_us"] for e in spans)
    meets = train(bin_dir, folder, "meets", "sync=outer", "every=2", "workers=2")
    run(bin_dir / "lockstep", "explain", meets, "step=3", f"out={folder}/meets.html")
    panel, = data_of(folder / "meets.html")["panels"]
    assert "law" not in panel  # the law is for a mean step, and step 3 sends nothing
    assert all(total == {"out": 0, "in": 0} for total in panel["total"].values())
    cut = train(bin_dir, folder, "cut", "sync=ring", "mesh=pp2", "layers=2", "accum=4")
    run(bin_dir / "lockstep", "explain", cut, f"out={folder}/cut.html")
    panel, = data_of(folder / "cut.html")["panels"]
    names = [e["args"]["name"] for e in panel["trace"]["traceEvents"]
             if e["name"] == "process_name"]
    assert names == ["rank 0 (pp 0) (ring)", "rank 1 (pp 1) (ring)"], names
    said = run(bin_dir / "lockstep", "explain", runs[0], folder, status=1)
    assert "has no run.json" in said
    said = run(bin_dir / "lockstep", "explain", runs[0], f"out={folder}/both",
               f"svg={folder}/./both", status=1)
    assert "is the page, too; try: another svg=" in said
    assert not (folder / "both").exists()
    said = run(bin_dir / "lockstep", "explain", runs[0], "step=77", f"out={page}",
               status=1)
    assert "no step 77" in said
    return page


def lab_page(folder):
    """Test the page of a lab's test that fails."""
    skeleton = TOP / "labs/04-ring/skeleton.c"
    run(TOP / "labs/grade", "4", skeleton, "--out", folder / "lab", status=1)
    page = folder / "lab/04/timeline-bytes.html"
    data = data_of(page)
    assert "the law says" in data["lead"][0]
    return page


def browser_of():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return name
    return None


def dom(browser, page, at=0, script=None):
    """The document after the page was drawn and `script` has run in it."""
    if script:
        copy = page.with_name("scripted.html")
        copy.write_text(re.sub("<meta http-equiv=.*?>", "", page.read_text(),
                               flags=re.S).replace(
            "</body>", f"<pre id='said'></pre><script>{script}</script></body>"))
        page = copy
    text = run(browser, "--headless=new", "--no-sandbox", "--disable-gpu",
               "--window-size=900,900", "--virtual-time-budget=20000", "--dump-dom",
               f"file://{page}#at={at}")
    assert 'data-ready="yes"' in text, text[-2000:]
    assert "data-error" not in text, re.search(r'data-error="[^"]*"', text)[0]
    return text


def counters(text):
    return [html.unescape(c) for c in re.findall(
        r'<text id="c\d+-\d+"[^>]*>([^<]*)</text>', text)]


PLAY = """
const said = [], note = () => said.push(at / span);
$("seek").value = 0.5; $("seek").dispatchEvent(new Event("input")); note();
$("next").click(); note();
$("back").click(); $("back").click(); note();
document.body.dispatchEvent(new KeyboardEvent("keydown",
  {key: "ArrowRight", bubbles: true})); note();
document.querySelector("li").click(); note();
$("speed").value = "4"; $("play").click();
setTimeout(() => { note(); $("said").textContent = JSON.stringify(said); }, 9000);
"""


def drawn(text):
    """The document without its scripts."""
    return re.sub(r"<script.*?</script>", "", text, flags=re.S)


def hostile(value, text):
    """The same data with `text` behind every string."""
    if isinstance(value, dict):
        return {k: v if k == "ph" else hostile(v, text) for k, v in value.items()}
    if isinstance(value, list):
        return [hostile(v, text) for v in value]
    return value + text if isinstance(value, str) else value


def hostile_pages(program, page, policy):
    """A page shows text of strangers as text, and runs none of it, with its policy
    or without it."""
    evil = "<img src=q onerror=\"document.title='OWNED'\">"
    template = (TOP / "core/virtual/page.html").read_text()
    if not policy:
        template = re.sub("<meta http-equiv=.*?>", "", template, flags=re.S)
    data = hostile(data_of(page), evil)
    for vector in data["panels"][0]["cells"]["vectors"]:
        vector["n"] = f"{vector['n']}{evil}"
        vector["cuts"] = [f"{cut}{evil}" for cut in vector["cuts"]]
    data["panels"][0]["cells"]["ranks"] = evil
    other = page.with_name("hostile.html")
    other.write_text(template.replace("{{DATA}}",
                                      json.dumps(data).replace("<", "\\u003c")))
    body = drawn(dom(program, other, .3))  # a message is under way
    assert "<img" not in body and "&lt;img" in body and "<title>OWNED" not in body


def browser(bin_dir, folder):
    """Test pages in a browser."""
    program = browser_of()
    if not program:
        print("skipped: there is no Chromium; try: apt-get install chromium")
        return SKIPPED
    for words in WAYS[0], WAYS[2], WAYS[4]:
        page = folder / "way.html"
        run(bin_dir / "lockstep", "explain", *words, "text=0", f"out={page}")
        lanes = len(data_of(page)["panels"][0]["law"])
        before, half, after = [counters(dom(program, page, at)) for at in (0, .5, 1)]
        assert len(before) == len(half) == len(after) == lanes
        assert all(re.match(r"out [0.]+ k?B of \d", c) for c in before), before
        assert all(re.fullmatch(r"out [\d.]+ k?B = law, in [\d.]+ k?B = law", c)
                   for c in after), after
        assert half not in (before, after)
    page = folder / "way.html"
    hostile_pages(program, page, True)
    hostile_pages(program, page, False)
    said = re.search(r'<pre id="said">([^<]+)</pre>',
                     dom(program, page, script=PLAY))
    half, later, earlier, again, first, end = json.loads(said[1])
    assert half == .5 and earlier < .5 < later and again > earlier
    assert first == 0 and end == 1, (first, end)
    text = dom(program, run_page(bin_dir, folder), 1)
    assert "exposed" in text and "over tcp, 2 workers" in text
    assert "<th>bubble</th>" not in drawn(text)
    assert [c for c in counters(text) if "law" in c]
    text = drawn(dom(program, folder / "cut.html"))
    assert "<th>bubble</th>" in text and ", micro-batch 3" in text
    assert "bytes to rank" in dom(program, lab_page(folder), 1)
    return 0


def main():
    bin_dir, what = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if what == "browser":
            return browser(bin_dir, folder)
        pages(bin_dir, folder)
        run_page(bin_dir, folder)
        lab_page(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())

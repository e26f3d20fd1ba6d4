#!/usr/bin/env python3
"""Tests the answers of predict and fit: one precision for all columns, the reasons and
ties of the table of meshes, and words as people write them.

    forecasts.py LOCKSTEP TREE
"""

import csv
import os
import pathlib
import re
import subprocess
import sys
import tempfile

LOCKSTEP = sys.argv[1]
LARGE = ["model=gpt2-medium", "hosts=4", "slots=8", "device=h100", "link=25gbit"]
SMALL = ["model=micro", "compute_ms=100"]


def say(*words, status=0):
    done = subprocess.run([LOCKSTEP, *words], capture_output=True, text=True,
                          check=False)
    assert done.returncode == status, (words, done.stdout, done.stderr)
    assert status == 0 or done.stderr.count("\n") == 1, done.stderr
    return done.stdout + done.stderr


def rows(answer):
    """The rows of the table of meshes, by the names of its columns."""
    lines = answer.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("mesh "))
    table = []
    for line in lines[first + 1:lines.index("", first)]:
        mesh, sync, wire, batch, accum, step, compute, link, bubble, error, memory, \
            dp, pp, tp = re.sub(" shard=", ":", line).split()[:14]
        table.append({"mesh": mesh, "sync": sync, "wire": wire, "step": float(step),
                      "compute": float(compute), "link": float(link),
                      "bubble": float(bubble[:-1]), "error": float(error[:-1]),
                      "memory": float(memory), "sent": float(dp) + float(pp) + float(tp),
                      "line": line, "words": (batch, accum)})
    return table


def one_precision():
    """device=h100 means bf16 in every column; anything else has no estimate."""
    for words in (["predict", *LARGE], ["predict", "model=gpt2", "device=h100",
                                        "link=25gbit", "sync=ring"],
                  ["fit", "model=gpt2", "memory=24gb", "device=h100"]):
        said = say(*words)
        assert "precision=bf16" in said and "CUDA context" in said, said
        assert said == say(*words, "precision=bf16")
        for other in "fp32", "fp16":
            assert f"no estimate for precision={other}; try: precision=bf16" in \
                say(*words, f"precision={other}", status=1)
    said = say("predict", *LARGE, "compute_ms=9", status=1)
    assert "device=h100 estimates compute_ms=" in said
    assert "CUDA" not in say("fit", "model=gpt2", "memory=4gb")


def refusals_come_first():
    """A row that is refused comes before the table; an unknown key names the command's own
    help, and the nearest key of train."""
    said = say("fit", "memory=2gb", "model=nano", "accum=4097", status=1)
    assert said.startswith("lockstep: accum=4097: a pipeline takes at most 4096"), said
    for words in ["predict", "workers=2", "link=1gbit"], ["fit", "memory=2gb"]:
        assert f"unknown key bach; nearest: batch; all: lockstep {words[0]} --help\n" in \
            say(*words, "bach=3", status=1)


def shares_of_cores():
    """Workers of one host share its cores, as the trainer's do."""
    cores = os.sysconf("SC_NPROCESSORS_ONLN")
    fit = ["fit", "memory=200mb", "model=micro"]
    for more, workers in ((["mesh=pp2", "accum=4"], 2), (["mesh=tp2"], 2),
                          (["mesh=dp2,pp2", "accum=4"], 4),
                          (["mesh=dp2", "hosts=2"], 1), (["hosts=4", "slots=2"], 2)):
        own = f"threads={max(1, cores // workers)}"
        assert say(*fit, *more) == say(*fit, *more, own), (more, own)


def stages_must_fit():
    cut = ["predict", *SMALL, "mesh=pp2", "link=1gbit"]
    for more, cause in ((["chunks=2", "stages=1,2,1,7"], "add up to 11 layers"),
                        (["chunks=2", "stages=1,2,1"], "3 parts, but mesh= and"),
                        (["stages=1,1,2"], "3 parts, but mesh= and chunks= make 2"),
                        (["stages=1,1"], "add up to 2 layers, the model has 4"),
                        (["mesh=tp99"], "predict: mesh=tp99: tp is more than the model's")):
        assert cause in say(*cut, *more, status=1)
    said = say(*cut, "chunks=2", "stages=1,1,1,1", "global_batch=16")
    assert "chunks=2 stages=1,1,1,1" in said


def table_has_reasons():
    """compute + bubble + link make the step, and the fastest wire is found."""
    for row in rows(say("predict", *LARGE)):
        assert row["compute"] + row["link"] < row["step"] * 1.001, row
        if row["bubble"] == 0:
            assert abs(row["compute"] + row["link"] - row["step"]) < \
                2e-3 * row["step"], row
        assert 0 < row["error"] <= 15, row
    found = rows(say("predict", *LARGE))
    narrow = rows(say("predict", *LARGE, "wire=bf16"))
    wide = rows(say("predict", *LARGE, "wire=fp32"))
    assert found[0]["step"] == min(narrow[0]["step"], wide[0]["step"])
    # A wire that is found is the same as one that is given: with 16 bits the first stage
    # sends its table to the last.
    cut = ["predict", *SMALL, "inner=1gbit", "mesh=dp2,pp2", "batch=1", "sync=ring"]
    row = rows(say(*cut))[0]
    assert row["wire"] == "bf16" and row["line"] == rows(say(*cut, "wire=bf16"))[0]["line"]
    one = ["predict", *LARGE, "mesh=dp32", "sync=ring"]
    said = say(*one)
    assert rows(said)[0]["wire"] == "bf16"
    slow = rows(say(*one, "wire=fp32"))[0]
    assert f"The fastest with wire=fp32 takes {slow['step']:.4g} s: mesh=dp32" in said
    assert slow["step"] > 1.5 * rows(said)[0]["step"]
    assert "wire=fp32" not in say(*one, "wire=bf16")


def ties_are_named():
    """Equal times: first the way that sends less."""
    said = say("predict", *LARGE[:3], "link=25gbit", "inner=450GB/s", "compute_ms=50",
               "precision=bf16", "mesh=dp32", "sync=zero")
    table = rows(said)
    same = [row for row in table if row["step"] == table[0]["step"]]
    assert len(same) > 1, said
    assert [row["sent"] for row in same] == sorted(row["sent"] for row in same)
    assert f"Rows 1 and {len(same)} tie at {table[0]['step']:.4g} s" in said
    assert "within the error: row" in said


def hosts_of_gpus():
    """With GPUs, what hosts do is said, and the ways of which they do a part, marked with a
    star, are not compared."""
    asked = ["predict", "model=gpt2", "device=h100", "link=25gbit"]
    updates, copies = "processors of hosts update", "what travels is copied to host memory"
    said = say(*asked, "workers=2,8")
    stars = re.findall(r"^([a-z]+)(\*?) .*%$", said, re.M)
    assert {way for way, star in stars if not star} == {"allreduce", "ring"}, said
    assert len(stars) == 14 and "not counted,\nand these ways are not compared" in said
    assert f"sps, dps, zero, dataparallel: {updates}" in said and f"outer: {copies}" in said
    for workers in 2, 8:  # zero would be the fastest, by what is counted
        assert f"\n{workers} workers: allreduce and ring are fastest, too close to tell " \
            "apart\n" in said, said
    assert f"\nsps, dps: {copies}" in say(*asked, "workers=2", "sync=sps,dps",
                                          "update=worker")
    said = say(*asked, "workers=4", "squeeze=int8")
    assert "fastest" not in said and "ring: gradients are copied to host memory" in said
    assert re.findall("4 workers, (.*): whole gradients .*; no compressor can win more",
                      said) == ["allreduce", "ring"] and "times as long" not in said, said
    for words in ["workers=4", "sync=ring"], ["mesh=dp4"], ["mesh=tp4"]:
        said = say(*asked, *words)
        assert "\nring: " not in said and "\nstages: " not in said, said
    for mesh in "pp2", "dp2,pp2,tp2":
        said = say(*asked, f"mesh={mesh}")
        assert "None is compared (*). The first row: mesh=" in said, said
        assert f"\nstages: {copies}" in said and "As fast" not in said and "tie" not in said
        assert all(row["mesh"].endswith("*") for row in rows(said)), said
    # Slices of 50257 words differ, but are made equal on the GPUs.
    said = say(*asked, "hosts=2", "slots=4")
    assert "The fastest of those without *: mesh=dp2,tp4 sync=ring wire=bf16" in said, said
    said = say(*asked, "mesh=dp2,tp2")
    assert [(row["mesh"], row["sync"], row["wire"]) for row in rows(said)] == \
        [("dp2,tp2+seq2", "ring", "bf16"), ("dp2,tp2+seq2*", "zero:1", "fp32")], said
    # the time of an unknown device, perhaps of a GPU
    for words in ["workers=2"], ["mesh=pp2"]:
        for time, noted in (["flops=1e15", "mfu=0.4"], True), (["compute_ms=9"], False):
            said = say("predict", "model=micro", "link=1gbit", *time, *words)
            assert ("If workers are GPUs, what hosts do for zero, dataparallel, servers"
                    in said) == noted, said


def notes_of_gpus():
    """What is said below tables of GPUs is about their rows, once, in 90 columns."""
    asked = ["predict", "model=gpt2", "device=h100", "link=25gbit"]
    for words, held in ((["workers=2", "sync=ring"], ""), (["mesh=dp2", "sync=ring"], ""),
                        (["workers=2", "sync=ring,zero"], "zero"), (["mesh=dp2"], "zero"),
                        (["workers=2"], "zero and dataparallel")):
        said = say(*asked, *words)
        assert re.findall("The shards or state of (.*?) count",
                          said.replace("\n", " ")) == [held] * bool(held), said
        assert not said.endswith("\n\n"), said
        for line in said[said.index("\nprocess: "):].split("\n"):
            assert len(line) <= 90 or " workers: " in line or "exchanges" in line, line
    for words, held in ([], "zero and dataparallel"), (["mesh=tp2"], "zero"), \
            (["sync=ring"], ""):
        said = say("fit", "memory=24gb", "device=h100", *words).replace("\n", " ")
        assert (f"The shards or state of {held} count" in said) == bool(held), said
    for ways in "zero,ring", "ring", "zero,dataparallel", "zero,outer":
        said = say(*asked, "workers=2,8", f"sync={ways}")
        assert "fastest" not in said and not said.endswith("\n\n"), said
        assert "It is left out" not in said and \
            said.count("its row is the mean") == ("outer" in ways), said
    assert "It is left out" in say("predict", *SMALL, "link=1gbit", "workers=2")
    said = say(*asked[:3], "mesh=dp2", "inner=1gbit", "sync=zero")
    assert "None is compared" in said, said
    assert "\nwire=bf16 rounds the gradients.\n" in said, said


def training_takes_them():
    """Only ways that training takes: replicas with shards add slices of unequal length in
    one order."""
    asked = ["predict", "model=gpt2", "link=25gbit", "inner=200gbit", "compute_ms=30",
             "sync=zero"]
    said = say(*asked, "hosts=2", "slots=4")
    assert len(rows(said)) > 3 and not re.search("dp4,tp2|dp2,tp4", said), said
    for words, wires in (["mesh=dp2,tp2"], ["fp32"]), \
            (["mesh=dp2,tp2", "vocab_size=50304"], ["bf16"]):
        said = say(*asked, *words)
        assert [row["wire"] for row in rows(said)] == wires, said
    said = say(*asked, "mesh=dp4,tp2", status=1)
    assert "sync=zero: slices (tp) of unequal length and 4 replicas" in said, said
    fit = ["fit", "memory=2gb", "model=nano", "heads=3", "channels=48"]
    for mesh, shown in ("tp2,dp2", True), ("tp2,dp4", False):
        said = say(*fit, f"mesh={mesh}")
        assert "\nring+seq " in said and ("\nzero " in said) == shown, said
    said = say(*fit, "mesh=tp2,dp4", "sync=zero", status=1)
    assert "sync=zero: slices (tp) of unequal length and 4 replicas" in said, said
    asked = [*asked[:4], "offload=disk", "disk=5e9"]
    for form in "workers=4", "mesh=dp4":
        said = say(*asked, "device=h100", form)
        assert not re.search(r"^(dp4\*? +)?(ring|allreduce|outer)\b", said, re.M), said
        for more, cause in (["compute_ms=30", "sync=dps"], "disk is not for sync=dps"), \
                (["device=h100", "sync=ring"], "disk with a GPU is not for sync=ring"):
            assert cause in say(*asked, form, *more, status=1)


def links_are_said():
    """The link inside a host is given, or assumed for the device and said so."""
    said = say("predict", *LARGE)
    assert "within a host, assumed: NVLink of an H100 SXM, 450 GB/s" in said
    said = say("predict", *LARGE, "inner=200gbit")
    assert "200gbit within a host" in said and "assumed" not in said
    said = say("predict", *SMALL, "hosts=2", "slots=4", status=1)
    assert "inner= is missing, the rate between the 4 workers of a host" in said
    for more in ["hosts=2", "slots=1"], ["hosts=1", "slots=4", "link=25gbit"]:
        say("predict", *SMALL, *more)


def numbers_as_people_say_them():
    """Minutes, hours and days; units; workers= beside hosts=; models by their sizes."""
    for tokens, text in (("2e6", "seconds"), ("2e9", "minutes"), ("1e10", "hours"),
                         ("1e12", "days")):
        assert re.search(rf"\d {text}\n", say("predict", *LARGE, f"tokens={tokens}"))
    for words in (["fit", "model=gpt2", "memory={}", "4gb", "4GB", "4g", "4G"],
                  ["predict", *SMALL, "sync=ring", "link={}", "25gbit", "25Gbit/s",
                   "25gbps"]):
        at = next(i for i, word in enumerate(words) if "{}" in word)
        told = {re.sub(r"network: .*", "", say(
            *words[:at], words[at].format(value))) for value in words[at + 1:]}
        assert len(told) == 1, words
    for value in "25", "25gb", "3mb/s":
        said = say("predict", *SMALL, f"link={value}", status=1)
        assert f"link={value}: want a rate with its unit" in said
    assert "try: memory=24gb" in say("fit", "memory=24", status=1)
    assert "try: memory=2gb" in say("fit", "memory=0", status=1)
    hosts = ["predict", *SMALL, "inner=100gbit", "hosts=4"]
    assert say(*hosts, "workers=32") == say(*hosts, "slots=8") == say(*hosts)
    assert "hosts=4 with slots=2 are 8 workers, not 32" in \
        say(*hosts, "slots=2", "workers=32", status=1)
    assert "32 workers" in say("fit", "memory=4gb", "hosts=4", "slots=8")
    said = say("predict", "layers=80", "channels=8192", "heads=64", "hosts=8",
               "slots=1", "compute_ms=9000")
    assert "model:     80 layers, 64 heads, 8192 channels" in said
    assert "micro" not in said
    assert "model:     micro: 8 layers" in say("predict", *SMALL, "layers=8", "hosts=2",
                                               "slots=1")
    assert "for train hosts= is a file" in " ".join(say("predict", "--help").split())


def training(line):
    """(seconds, cost) of a row, from its last columns: 171 years  2994184."""
    number, unit, cost = line.split()[-3:]
    seconds = {"years": 365.25 * 86400, "days": 86400, "hours": 3600}[unit]
    return float(number) * seconds, float(cost)


def time_and_cost():
    """flops= and mfu= give the time of a step; tokens= and price= what a training
    takes and costs."""
    flop = 6 * 123653376 + 12 * 12 * 768 * 1024  # gpt2, without its positions
    step_ms = 8 * 1024 * flop / (312e12 * 0.4) * 1e3
    asked = ["predict", "model=gpt2", "workers=16", "link=25gbit", "sync=ring",
             "tokens=1e10", "price=2"]
    by_flop = re.sub("If workers are GPUs.*\n.*\n", "", say(
        *asked, "flops=312e12", "mfu=0.4")).replace("flops= and mfu=", "compute_ms=")
    assert by_flop == say(*asked, f"compute_ms={step_ms:.17g}"), by_flop
    row = next(line for line in by_flop.splitlines() if line.startswith("ring "))
    rate = float(row.split()[-5])
    seconds, cost = training(row)
    assert abs(seconds / (1e10 / rate) - 1) < 0.01, row
    assert abs(cost / (1e10 / rate / 3600 * 16 * 2) - 1) < 0.01, row
    assert "training" not in say("predict", *SMALL, "workers=2", "link=1gbit")
    for words, cause in ((["flops=1e12"], "flops= requires mfu="),
                         (["mfu=0.5"], "mfu= requires flops="),
                         (["flops=1e12", "mfu=0.5", "compute_ms=9"],
                          "compute_ms= gives, too"),
                         (["price=2", "compute_ms=9"], "follows from tokens=")):
        for hosts in ["hosts=1"], ["workers=2"]:
            assert cause in say("predict", "model=gpt2", "link=1gbit", *hosts, *words,
                                status=1)


def page_says_so():
    """The commands of docs/parallelism.md give the years and dollars of the page."""
    page = pathlib.Path(sys.argv[2], "docs/parallelism.md").read_text()
    text = " ".join(page.split())
    commands = re.findall(r"lockstep (predict(?: [^ ]+=[^ ]+| \\)+)", text)
    paid = [c.replace("\\", "").split() for c in commands if "price=" in c]
    assert len(paid) == 2, paid
    for words in paid:
        number, unit, cost = rows(say(*words))[0]["line"].split()[-3:]
        assert f"{number} {unit} and {int(cost):,} dollars" in text, (words, cost)


def rows_are_divided():
    """Slices with divided rows need less memory. They send 10/8 of the bytes in fp32 and
    7/8 in bf16, but for the loss and the LayerNorms; what is faster or fits is shown."""
    asked = ["predict", "model=gpt2", "mesh=tp4", "inner=100gbit", "compute_ms=100",
             "batch=4", "global_batch=4"]
    for precision, share, kept, first in (("fp32", 10 / 8, 8 / 8, "tp4"),
                                           ("bf16", 7 / 8, 6 / 8, "tp4+seq2")):
        words = [*asked, f"precision={precision}"]
        whole, divided, again = (rows(say(*words, f"tp_sequence={k}"))[0]
                                 for k in (0, 1, 2))
        assert again["mesh"] == "tp4+seq2" and again["memory"] > whole["memory"]
        assert abs(again["sent"] / whole["sent"] / kept - 1) < 0.02, (whole, again)
        assert divided["mesh"] == "tp4+seq" and whole["mesh"] == "tp4"
        most = 0.9 if precision == "fp32" else 0.95  # products in bf16: by processor
        assert divided["memory"] < most * whole["memory"]
        assert abs(divided["sent"] / whole["sent"] / share - 1) < 0.02, (whole, divided)
        assert rows(say(*words))[0]["mesh"] == first
        between = (divided["memory"] + whole["memory"]) / 2
        assert rows(say(*words, f"memory={between}mb"))[0]["mesh"] == "tp4+seq"


def groups_exchange_heads():
    """Two hosts of two workers, with a slow link between them: groups that exchange heads
    send less between hosts than rings do. They are tried, and of two heads they are the
    only way that exchanges some."""
    asked = ["predict", "model=micro", "context=8192", "compute_ms=9000", "link=100mbit",
             "inner=100gbit", "global_batch=1", "batch=1", "hosts=2", "slots=2",
             "sync=ring"]
    for over in "gather", "ring":
        whole, groups = (rows(say(*asked, f"mesh={mesh}", f"attention_over={over}"))[0]
                         for mesh in ("cp4", "cp2,up2"))
        assert groups["step"] < whole["step"], (groups, whole)
    assert " up MB" in say(*asked, "mesh=cp2,up2")
    tried = {row["mesh"] for row in rows(say(*asked, "heads=2"))}
    assert "cp2,up2+ring" in tried and "cp4+heads" not in tried, tried


def sequences_are_divided():
    """Without mesh= predict and fit try to divide sequences, in all ways; both refuse
    what train refuses."""
    asked = ["predict", "model=micro", "context=8192", "compute_ms=9000", "link=1gbit",
             "global_batch=1", "batch=1"]
    said = say(*asked, "slots=4")
    assert {"cp4", "cp4+ring", "cp4+heads"} & {row["mesh"] for row in rows(said)}, said
    found = {}
    for over in "gather", "ring", "heads":
        said = say(*asked, "mesh=cp4", f"attention_over={over}")
        row = rows(said)[0]
        assert row["mesh"] == ("cp4" if over == "gather" else f"cp4+{over}"), said
        assert over == "gather" or f" attention_over={over}" in said, said
        found[over] = row["step"]
        only = rows(say(*asked, "slots=4", f"attention_over={over}"))
        assert {row["mesh"] for row in only if row["mesh"].startswith("cp4")} == \
            {row["mesh"]}, only
    assert rows(say(*asked, "mesh=cp4"))[0]["step"] == min(found.values()), found
    groups_exchange_heads()
    said = say("fit", "memory=4gb", "model=gpt2", "workers=4")
    for way in "pp4", "tp4", "tp4+seq", "cp4", "cp4+ring", "cp4+heads", "cp2,up2+ring":
        assert re.search(rf"^{re.escape(way)} +\d", said, re.M), (way, said)
    assert "cp4+ring" not in say("fit", "memory=4gb", "workers=4",
                                 "attention_over=heads")
    for command in (["predict", "link=1gbit", "compute_ms=9"], ["fit", "memory=4gb"]):
        for words, cause in (
                (["mesh=cp8", "attention_over=heads", "heads=4"], "divide 4 heads"),
                (["mesh=cp8", "context=4"], "divide sequences of 4 tokens"),
                (["mesh=cp2,up4", "heads=2"], "4 workers divide 2 heads"),
                (["mesh=up8"], "try: mesh=cp8 attention_over=heads"),
                (["mesh=cp2,up4", "attention_over=heads"], "or cp8 without up"),
                (["mesh=dp8", "attention_over=ring"], "try: mesh=cp2"),
                (["mesh=cp8", "tp_sequence=1"], "try: mesh=tp2")):
            assert cause in say(*command, "model=micro", *words, status=1), words
    assert "try: mesh=cp2" in say("predict", *SMALL, "workers=4", "link=1gbit",
                                  "attention_over=ring", status=1)
    for command in "predict", "fit":
        assert "attention_over" in say(command, "--help")
    assert "cpC" in say("predict", "--help")


def state_in_a_file():
    """fit shows each way whose workers update with offload=disk, too; predict adds the
    time in which the disk reads and writes all of the state."""
    asked = ["fit", "memory=2gb", "model=gpt2", "workers=4", "threads=1"]
    said = say(*asked)
    optimiser = {line.split("  ")[0]: float(line.split()[-7])
                 for line in said.splitlines() if line.startswith(("ring", "zero shard=1"))}
    assert optimiser == {"ring": 995.5, "ring+disk": 25.2, "zero shard=1": 248.9,
                         "zero shard=1+disk": 25.2}, optimiser
    assert "sps+disk" not in said and "dataparallel+disk" not in said
    assert "+disk " not in say(*asked, "optimizer=lamb") + say(*asked, "offload=none")
    ways = say(*asked, "sync=sps,ring", "offload=disk").splitlines()
    assert [w.split()[0] for w in ways if "disk " in w] == ["ring+disk"], ways
    asked = ["predict", "model=gpt2", "workers=4", "link=25gbit", "compute_ms=900"]
    said = say(*asked, "offload=disk", "disk=1e9")
    assert "takes 2.891 s for a step" in said and "\nsps" not in said, said  # 0.9 + 16 P / R
    # with shard=3 parameters are in the file, too: 24 P/4 R, and 8 P/4 R beside computing
    for rate, alone in ("1e9", "1.968"), ("1e8", "10.28"):
        said = say(*asked, "offload=disk", f"disk={rate}", "sync=zero", "shard=3")
        assert re.search(rf"^zero .* {alone} s ", said, re.M), said
    for words in ["offload=disk"], ["disk=1e9"]:
        assert "try: offload=disk disk=1e9" in say(*asked, *words, status=1)


def sent(words, folder):
    """The bytes that the busiest worker of a training sends, with its server, by step."""
    say("train", *words, f"data={__file__}", "eval=0", "save=0", f"out={folder}")
    most = {}
    with open(f"{folder}/steps.csv", newline="", encoding="utf-8") as f:
        for row in csv.DictReader(f):
            step = int(row["step"])
            most[step] = max(most.get(step, 0), int(row["bytes_tx"]))
    return most


def first_steps(folder):
    """Before squeeze= begins, steps send whole gradients. predict says of both kinds of
    steps the bytes that train counts, and the training of tokens= takes 2 steps of one
    kind and 6 of the other."""
    model = ["model=nano", "layers=1", "channels=32", "context=16", "vocab_size=256"]
    for squeeze, sync in (("sign freeze=2", "ring"), ("sign freeze=2", "dps"),
                          ("topk density=0.1 squeeze_after=2", "ring")):
        words = [*model, *f"squeeze={squeeze}".split(), f"sync={sync}", "steps=8", "batch=1",
                 "workers=2", *["transport=tcp"] * (sync != "dps")]
        asked = [word for word in words if not word.startswith("transport")]
        said = say("predict", *asked, "link=0.01MB/s", "compute_ms=10", "alpha_us=0",
                   "tokens=256")
        assert "steps 1 to 2 send whole gradients" in said and "from step 3 on" in said
        first, then = [line.split() for line in said.splitlines()
                       if line.startswith(f"{sync} ")][:2]
        seconds = [float(row[7]) * (1 if row[8] == "s" else 1e-3) for row in (first, then)]
        took = 2 * seconds[0] + 6 * seconds[1]
        assert len(first) == 12 and abs(float(then[12]) / took - 1) < 0.05, (said, took)
        for step, count in sent(words, folder / f"{sync}-{squeeze[0]}").items():
            want = float((first if step <= 2 else then)[1]) * 1e6
            assert abs(count / want - 1) < 2e-3, (squeeze, sync, step, count, want)
    assert "table of meshes has one" in say("predict", "hosts=2", "slots=1", "squeeze=topk",
                                            "squeeze_after=2", "link=1gbit", "compute_ms=1",
                                            status=1)


def most_of_compressing():
    """predict says how much shorter a compressor makes a step, and what is the most."""
    for link, limit in ("1gbit", ""), ("10gbit", ": the link is not the limit"):
        words = ["model=gpt2", "sync=ring", "workers=4", f"link={link}", "compute_ms=3000"]
        steps = [float(said.split("\nring ")[1].split()[6]) for said in
                 (say("predict", *words, *more) for more in ((), ("squeeze=int8",)))]
        assert f"4 workers, ring: whole gradients take {steps[0]:.4g} s a step, " \
            f"{steps[0] / steps[1]:.3g} times as long; no compressor can win more than " \
            f"{steps[0] / 3:.3g} times{limit}\n" in say("predict", *words, "squeeze=int8"), steps


def main():
    most_of_compressing()
    state_in_a_file()
    sequences_are_divided()
    time_and_cost()
    rows_are_divided()
    page_says_so()
    one_precision()
    refusals_come_first()
    shares_of_cores()
    stages_must_fit()
    table_has_reasons()
    ties_are_named()
    hosts_of_gpus()
    notes_of_gpus()
    training_takes_them()
    links_are_said()
    numbers_as_people_say_them()
    with tempfile.TemporaryDirectory(prefix="lockstep-forecasts-") as folder:
        first_steps(pathlib.Path(folder))
    print("ok")


main()

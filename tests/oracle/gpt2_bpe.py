#!/usr/bin/env python3
"""GPT-2's byte-pair encoding as OpenAI describes it, in plain Python.

It gives the expected results for core/data/bpe*.c. It is slow, and was written from the
description of the algorithm alone.

    gpt2_bpe.py encode VOCAB < text        token ids, one line
    gpt2_bpe.py golden VOCAB > small.txt   the cases of tests/golden, encoded
    gpt2_bpe.py learn N < text > VOCAB     a merge table of N lines
    gpt2_bpe.py lines VOCAB < cases        one line of ids for each line of hex

Words are split by the module `regex` if it is installed, else by a splitter of this
script that uses unicodedata.
"""

import collections
import random
import sys
import unicodedata

try:
    import regex
except ImportError:
    regex = None

PATTERN = (
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+"
    r"|\s+(?!\S)|\s+"
)
SPACES = set(range(9, 14)) | {0x20, 0x85, 0xA0, 0x1680, 0x2028, 0x2029,
                              0x202F, 0x205F, 0x3000} | set(range(0x2000, 0x200B))


def kind(ch):
    if ord(ch) in SPACES:
        return "s"
    category = unicodedata.category(ch)[0]
    return category if category in "LN" else "o"


def run(text, at, want):
    while at < len(text) and kind(text[at]) == want:
        at += 1
    return at


def split_by_hand(text):
    at = 0
    while at < len(text):
        end = at
        for tail in ("s", "t", "re", "ve", "m", "ll", "d"):
            if end == at and text.startswith("'" + tail, at):
                end = at + 1 + len(tail)
        start = at + (text[at] == " ")
        for want in "LNo":
            if end == at and run(text, start, want) > start:
                end = run(text, start, want)
        if end == at:
            end = run(text, at, "s")
            if end < len(text) and end - at > 1:
                end -= 1
        yield text[at:end]
        at = end


def split(text):
    return regex.findall(PATTERN, text) if regex else list(split_by_hand(text))


def byte_alphabet():
    """{byte: the character that stands for it}, in the order of token ids."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table = {b: chr(b) for b in printable}
    for b in range(256):
        if b not in table:
            table[b] = chr(256 + len(table) - len(printable))
    return table


ALPHABET = byte_alphabet()


def read_vocab(path):
    with open(path, encoding="utf-8") as f:
        lines = f.read().split("\n")[1:-1]
    ranks = {tuple(line.split(" ")): i for i, line in enumerate(lines)}
    tokens = list(ALPHABET.values()) + ["".join(p) for p in ranks]
    return ranks, {token: i for i, token in enumerate(tokens)}


def join(word, pair):
    out, i = [], 0
    while i < len(word):
        if tuple(word[i:i + 2]) == pair:
            out.append(word[i] + word[i + 1])
            i += 2
        else:
            out.append(word[i])
            i += 1
    return out


def encode_word(word, ranks):
    while len(word) > 1:
        pairs = set(zip(word, word[1:]))
        best = min(pairs, key=lambda p: ranks.get(p, len(ranks)))
        if best not in ranks:
            break
        word = join(word, best)
    return word


def spell(word):
    data = word.encode("utf-8", "surrogateescape")
    return [ALPHABET[b] for b in data]


def encode(data, vocab):
    """The token ids of any bytes. Bytes that are not UTF-8 count as neither letter, number
    nor space."""
    ranks, ids = vocab
    text = data.decode("utf-8", "surrogateescape")
    return [ids[t] for w in split(text) for t in encode_word(spell(w), ranks)]


def learn(text, n):
    words = collections.Counter(tuple(spell(w)) for w in split(text))
    made = set()
    print("#version: 0.2")
    while n > 0:
        pairs = collections.Counter()
        for word, count in words.items():
            for pair in zip(word, word[1:]):
                if "".join(pair) not in made:
                    pairs[pair] += count
        best = max(pairs, key=lambda p: (pairs[p], p))
        made.add("".join(best))
        print(*best)
        merged = collections.Counter()
        for word, count in words.items():
            merged[tuple(join(list(word), best))] += count
        words = merged
        n -= 1


def cases():
    """Texts with every kind of character that the pattern distinguishes. All characters
    are in Unicode since version 9."""
    yield from (s.encode() for s in (
        "Hello world", "hello world", " the the  the   the", "it's we'll I'd",
        "'s't're've'm'll'd'S'T", "don''t '' 'x", "a\n\n b\t\tc \n", "   ", " ",
        "12 345x6 ½ Ⅷ ²", "int main(void)\n{\n    return 0;\n}\n",
        "naïve Ünïcödé café", "日本語 テキスト。", "Ελληνικά Русский עברית",
        "a\u00a0b\u3000c\u2003\u2003d\u0085e\u1680f", "\x1c\x1d\x1e\x1fx",
        "e\u0301 ক্ষ", "👍🏽 👨‍👩‍👧", "\ufeffx\u200b y\u2028z",
        "<|endoftext|>", "_a-b/c=d==e===", "a" * 300, "ab" * 150, " " * 99 + "x",
        "=" * 80 + "\n", "\0\1\2 \x7f",
    ))
    yield from (b"\xff", b"\xc3", b"\xc3(", b"a\xe2\x82", b"\xed\xa0\x80",
                b"\xc0\x80", b"\xf4\x90\x80\x80 x", b" \x80\x80 \xfe", b"\xf0\x9f")
    random.seed(2)
    pool = "aAeéßжλ中ひ한٣5९ \u00a0\n\t'.,-_👍\u0301stmdrvl"
    for _ in range(60):
        length = random.randrange(1, 60)
        text = "".join(random.choice(pool) for _ in range(length)).encode()
        yield text
        cut = bytearray(text)
        cut[random.randrange(len(cut))] = random.randrange(256)
        yield bytes(cut)


def main():
    command, *rest = sys.argv[1:] or ["help"]
    if command == "learn":
        text = sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
        sys.stdout.reconfigure(encoding="utf-8")
        learn(text, int(rest[0]))
    elif command == "encode":
        print(*encode(sys.stdin.buffer.read(), read_vocab(rest[0])))
    elif command == "golden":
        vocab = read_vocab(rest[0])
        for data in cases():
            print(data.hex(), *encode(data, vocab))
    elif command == "lines":
        vocab = read_vocab(rest[0])
        for line in sys.stdin:
            print(*encode(bytes.fromhex(line), vocab))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()

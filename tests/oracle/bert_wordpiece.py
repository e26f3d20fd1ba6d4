#!/usr/bin/env python3
"""BERT's WordPiece encoding as its authors describe it, in plain Python.

It gives the expected results for core/data/wordpiece.c. It was written from the
description alone: clean the text, split it at white space, punctuation and Chinese
characters, and take from each word the longest token again and again.

    bert_wordpiece.py golden VOCAB > small_pieces.txt   the cases of tests/golden
    bert_wordpiece.py lines VOCAB < cases               ids for each line of hex
    bert_wordpiece.py peer VOCAB                        compare with `tokenizers`
"""

import random
import sys
import unicodedata

CHINESE = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2CEAF),
           (0xF900, 0xFAFF), (0x2F800, 0x2FA1F))
ALPHABET = "aabdeinorstu  ,.!中国我是的AÉéüñ\n\t#½ ​ßΑ가"


def is_punctuation(ch):
    return (unicodedata.category(ch)[0] == "P" or
            ord(ch) < 128 and ch.isprintable() and not ch.isalnum() and ch != " ")


def is_chinese(ch):
    return any(a <= ord(ch) <= b for a, b in CHINESE)


def is_left_out(ch):
    return ch == "�" or ch not in "\t\n\r" and unicodedata.category(ch) in ("Cc", "Cf")


def words(text, lower):
    """The words of a text."""
    found = [""]
    for ch in text:
        if ch in " \t\n\r" or unicodedata.category(ch) == "Zs":
            found.append("")
        elif is_punctuation(ch) or is_chinese(ch):
            found += [plain(ch) if lower else ch, ""]
        elif not is_left_out(ch):
            found[-1] += plain(ch) if lower else ch
    return [w for w in found if w]


def plain(ch):
    """Lower-case, without accents."""
    parts = unicodedata.normalize("NFD", ch.lower() if len(ch.lower()) == 1 else ch)
    return "".join(p for p in parts if unicodedata.category(p) != "Mn")


def pieces(word, ids):
    """The tokens of a word."""
    found, at = [], 0
    while at < len(word) <= 100:
        mark = "##" if at else ""
        end = next((e for e in range(len(word), at, -1) if mark + word[at:e] in ids), None)
        if end is None:
            break
        found.append(ids[mark + word[at:end]])
        at = end
    return found if at == len(word) else [ids["[UNK]"]]


class Vocab:
    """The tokens of a vocab.txt."""

    def __init__(self, path):
        with open(path, encoding="utf-8", newline="\n") as f:
            self.ids = {line.rstrip("\r\n"): i for i, line in enumerate(f)}
        self.lower = not any("A" <= ch <= "Z" for token in self.ids
                             if not token.startswith("[") for ch in token)

    def encode(self, text):
        return [i for w in words(text, self.lower) for i in pieces(w, self.ids)]


def cases():
    yield from ("", "the unaffable word", "Ünäffable", "我是中国的", "no-one: a.b,c", "x" * 101)
    random.seed(1)
    for _ in range(200):
        yield "".join(random.choice(ALPHABET) for _ in range(random.randrange(40)))


def peer(path, vocab):
    """Compares with the library of Hugging Face. Exits with 77 if it is not there."""
    try:
        from tokenizers import BertWordPieceTokenizer
    except ImportError:
        sys.exit(77)
    other = BertWordPieceTokenizer(path, lowercase=vocab.lower)
    for text in cases():
        theirs = other.encode(text, add_special_tokens=False).ids
        assert vocab.encode(text) == theirs, (text, vocab.encode(text), theirs)
    print("ok")


def main():
    what, path = sys.argv[1:3]
    vocab = Vocab(path)
    if what == "peer":
        peer(path, vocab)
    elif what == "golden":
        for text in cases():
            print(text.encode().hex(), *vocab.encode(text))
    else:
        for line in sys.stdin:
            text = bytes.fromhex(line.split()[0] if line.split() else "")
            print(*vocab.encode(text.decode(errors="ignore")))


main()

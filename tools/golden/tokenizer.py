"""Makes tests/data/text: small byte-level BPE tokenizers, and the tokenizers package's (0.23.3) results for texts.

The texts are not stored: a generator, which tests/unit/text/random_text.h repeats, makes them from the fragments and
code-point ranges in texts.json. Stored are a hash of the ids and of the decoded text for each batch
of strings, and the first strings in full, for diagnosis.

Usage: python tools/golden/tokenizer.py TRAINING_TEXT...       writes the files
       python tools/golden/tokenizer.py --show NAME BATCH      prints the strings of a batch, and their ids
"""

import argparse
import json
import pathlib

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests/data/text"
STRINGS, BATCH, SHOWN, ID_LISTS = 100_000, 500, 40, 20_000
MASK = (1 << 64) - 1

QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
         r"|\s+(?!\S)|\s+")
QWEN35 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = [r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
            "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
            "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"]
# No Unicode classes here: unknown patterns are matched by PCRE2, which has another Unicode version.
OTHER = r"(?i:'s|'ll)|[a-z]+|[A-Z][a-z]*|[0-9]{1,3}| ?[^ \t\r\na-zA-Z0-9]+[\r\n/]*|[ \t]*[\r\n]+|[ \t]+(?=[a-z])|[ \t]"

FRAGMENTS = [
    " ", "  ", "    ", "\t", "\n", "\r\n", "\n\n", " \n", "\n ", "\u00a0", "\u3000", "\u2028", "\u180e", "\u200b",
    "\x85", "\x0b", "\x0c", "\x1c", "\x00", "\x01", "\x7f", "\ufeff", "\ufffd",
    "the", " the", " and", "Once upon a time", " little", "Lily", " was", "ing", "tion", ".", ",", "!", "?", "...",
    "'s", "'S", "'t", "'re", "'RE", "'ve", "'Ve", "'m", "'ll", "'LL", "'d", "'D", "'\u017f", "\u2019s", "'x", "''", "'",
    "0", "7", "12", "345", "6789", "3.14159", "1,000,000", "\u0664\u0665", "\u00bd", "\u2167", "\u00b2",
    "int main() {\n\treturn 0;\n}\n", "for (i = 0; i < n; ++i)", "x_1 = y[2] ** 3", "</div>", "<a href=\"#\">", "::",
    "->", "=>", "&&", "//", "/* */", "\\n", "{{", "}}", "#include <x>", "https://a.b/c?d=e&f=1",
    "e\u0301", "a\u0308\u0323", "a\u0323\u0308", "o\u0302\u0301", "\u1ea4", "n\u0303", "\u0344", "\u0958", "\u2126",
    "\u212b", "\u0301", "\u0345\u0301", "q\u0323\u0307", "s\u0323\u0307", "\u0f73\u0f71", "\ufb1d", "\u2adc",
    "\u1100\u1161", "\u1100\u1161\u11a8", "\uac00\u11a8", "\ud55c\uad6d\uc5b4", "\u1112\u1161\u11ab",
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002", "\u3053\u3093\u306b\u3061\u306f", "\u30ab\u30bf\u30ab\u30ca",
    "\u304b\u3099", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35", "\u0928\u092e\u0938\u094d\u0924\u0947",
    "\u0645\u0631\u062d\u0628\u0627", "\u05e9\u05dc\u05d5\u05dd", "\u041f\u0440\u0438\u0432\u0435\u0442",
    "\u0393\u03b5\u03b9\u03ac", "\U0001f600", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\u2764\ufe0f",
    "\U0001f1e9\U0001f1ea", "\U0001f44d\U0001f3fd", "\U0001d400", "\U00020000",
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|im_", "<think>", "</think>", "<think", "<tool_call>",
    "<\uff5cUser\uff5c>", "<\uff5cAssistant\uff5c>", "<\uff5cbegin\u2581of\u2581sentence\uff5c>", "[L]", "[R]", "[W]",
    "[LR]", "cafe\u0301", "caf\u00e9", "[N]", "[NN]", "[",
]
RANGES = [[0x20, 0x7e], [0x20, 0x7e], [0x61, 0x7a], [0x61, 0x7a], [0x30, 0x39], [0, 0x1f], [0x7f, 0xff],
          [0x100, 0x24f], [0x250, 0x2ff], [0x300, 0x36f], [0x370, 0x52f], [0x530, 0x5ff], [0x600, 0x7ff],
          [0x800, 0xdff], [0xe00, 0xeff], [0xf00, 0xfff], [0x1000, 0x10ff], [0x1100, 0x11ff], [0x1200, 0x1aff],
          [0x1b00, 0x1fff], [0x2000, 0x20ff], [0x2100, 0x2bff], [0x2c00, 0x303f], [0x3040, 0x30ff], [0x3100, 0x4dff],
          [0x4e00, 0x9fff], [0xa000, 0xabff], [0xac00, 0xd7ff], [0xe000, 0xffff], [0x10000, 0x11fff],
          [0x12000, 0x1efff], [0x1f000, 0x1faff], [0x20000, 0x323af], [0x32400, 0x10ffff]]


class Random:
    """splitmix64."""

    def __init__(self, seed):
        self.state = seed & MASK

    def below(self, count):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return (z ^ (z >> 31)) % count


def random_text(index):
    random, text = Random(index), ""
    for _ in range(1 + random.below(12)):
        kind = random.below(8)
        if kind < 4:
            text += FRAGMENTS[random.below(len(FRAGMENTS))]
        elif kind < 5:
            fragment = FRAGMENTS[random.below(len(FRAGMENTS))]
            text += fragment * (1 + random.below(6))
        else:
            low, high = RANGES[random.below(len(RANGES))]
            for _ in range(1 + random.below(8)):
                text += chr(low + random.below(high - low + 1))
    return text


def random_ids(index, size):
    random = Random(index)
    return [random.below(size) for _ in range(1 + random.below(16))]


def fnv1a(data, value=0xCBF29CE484222325):
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return value


def id_bytes(ids):
    return b"".join(i.to_bytes(4, "little") for i in [len(ids), *ids])


def splits(*regexes):
    parts = [pre_tokenizers.Split(Regex(r), "isolated") for r in regexes]
    return pre_tokenizers.Sequence([*parts, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def special(*contents):
    return [AddedToken(c, special=True, normalized=False) for c in contents]


def plain(*contents):
    return [AddedToken(c, normalized=False) for c in contents]


CHATML = special("<|endoftext|>", "<|im_start|>", "<|im_end|>") + plain("<tool_call>", "</tool_call>", "<think>",
                                                                         "</think>")
DEEPSEEK_TOKENS = special("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>") + plain("<｜User｜>", "<｜Assistant｜>",
                                                                                     "<think>", "</think>")
# Every flag, and overlaps between them.
FLAGGED = [AddedToken("[L]", lstrip=True, normalized=False, special=True),
           AddedToken("[R]", rstrip=True, normalized=False), AddedToken("[LR]", lstrip=True, rstrip=True),
           AddedToken("[W]", single_word=True, normalized=False), AddedToken("the", single_word=True),
           AddedToken("café", normalized=True), AddedToken("[N]", normalized=True, lstrip=True),
           AddedToken("[NN]", normalized=True, special=True), AddedToken("\u304b\u3099", normalized=False)]


def behaviors():
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"[.!?]+"), "merged_with_previous"), pre_tokenizers.Split("_", "merged_with_next"),
        pre_tokenizers.Split(Regex(r"[\r\n]"), "contiguous"), pre_tokenizers.Split("\u3000", "removed"),
        pre_tokenizers.Split(Regex(r"[^ \-]+"), "removed", invert=True), pre_tokenizers.Digits(False),
        pre_tokenizers.ByteLevel(add_prefix_space=True)])


# name: normalizer, pre-tokenizer, added tokens, legacy merges ("a b" strings), ignore_merges, full byte alphabet
FIXTURES = {
    "qwen2": (normalizers.NFC(), splits(QWEN2), CHATML, True, False, True),
    "qwen35": (normalizers.NFC(), splits(QWEN35), CHATML, False, False, True),
    "deepseek": (None, splits(*DEEPSEEK), DEEPSEEK_TOKENS, True, False, True),
    "gpt2": (None, pre_tokenizers.ByteLevel(add_prefix_space=True), special("<|endoftext|>"), True, False, False),
    "digits": (None, pre_tokenizers.Sequence([pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(False)]),
               special("<|endoftext|>"), True, False, True),
    "flags": (normalizers.Sequence([normalizers.NFC()]), splits(OTHER), FLAGGED, True, True, True),
    "behaviors": (None, behaviors(), special("<|endoftext|>"), True, False, True),
}
VOCABULARY = 1200


def train(name, corpus):
    normalizer, pre_tokenizer, added, legacy, ignore_merges, alphabet = FIXTURES[name]
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    initial = pre_tokenizers.ByteLevel.alphabet() if alphabet else []
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, initial_alphabet=initial, show_progress=False)
    tokenizer.train_from_iterator(corpus if alphabet else [t for t in corpus if t.isascii()], trainer)
    tokenizer.add_tokens(added)
    if name == "deepseek":
        bos = "<｜begin▁of▁sentence｜>"
        tokenizer.post_processor = processors.Sequence([
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(single=f"{bos} $A", pair=f"{bos} $A {bos} $B",
                                          special_tokens=[(bos, tokenizer.token_to_id(bos))])])
    data = json.loads(tokenizer.to_str())
    if legacy:
        data["model"]["merges"] = [" ".join(pair) for pair in data["model"]["merges"]]
    if ignore_merges:
        # Words without their merges are only found as one token with ignore_merges.
        data["model"]["merges"] = data["model"]["merges"][:-200]
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    (OUT / f"{name}.tokenizer.json").write_text(text)
    return Tokenizer.from_str(text)


def golden(tokenizer):
    id_hashes, text_hashes = [], []
    for start in range(0, STRINGS, BATCH):
        encodings = tokenizer.encode_batch([random_text(i) for i in range(start, start + BATCH)])
        ids = [e.ids for e in encodings]
        id_hashes.append(f"{fnv1a(b''.join(map(id_bytes, ids))):016x}")
        text = "\0".join(tokenizer.decode_batch(ids, skip_special_tokens=False))
        text_hashes.append(f"{fnv1a(text.encode()):016x}")
    size = tokenizer.get_vocab_size()
    lists = [random_ids(i, size) for i in range(ID_LISTS)]
    shown = []
    for i in range(SHOWN):
        encoding = tokenizer.encode(random_text(i))
        shown.append({"text": random_text(i), "ids": encoding.ids,
                      "decoded": tokenizer.decode(encoding.ids, skip_special_tokens=True)})
    return {"vocab_size": size, "encode": id_hashes, "decode": text_hashes,
            "decode_random": f"{fnv1a(chr(0).join(tokenizer.decode_batch(lists, skip_special_tokens=True)).encode()):016x}",
            "plain": tokenizer.encode("a b", add_special_tokens=False).ids, "examples": shown}


def write(paths):
    OUT.mkdir(parents=True, exist_ok=True)
    corpus = [random_text(i) for i in range(1_000_000, 1_010_000)]
    for path in paths:
        corpus += pathlib.Path(path).read_text()[:1_000_000].splitlines()
    (OUT / "texts.json").write_text(json.dumps({"fragments": FRAGMENTS, "ranges": RANGES, "batch": BATCH,
                                                "id_lists": ID_LISTS}, separators=(",", ":")))
    for name in FIXTURES:
        result = golden(train(name, corpus))
        (OUT / f"{name}.golden.json").write_text(json.dumps(result, separators=(",", ":")))


def show(name, batch):
    tokenizer = Tokenizer.from_file(str(OUT / f"{name}.tokenizer.json"))
    for i in range(batch * BATCH, (batch + 1) * BATCH):
        print(i, ascii(random_text(i)), tokenizer.encode(random_text(i)).ids)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--show", nargs=2, metavar=("NAME", "BATCH"))
    arguments = parser.parse_args()
    if arguments.show:
        show(arguments.show[0], int(arguments.show[1]))
    else:
        write(arguments.paths)


if __name__ == "__main__":
    main()

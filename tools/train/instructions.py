"""Derives an instruction ("write a story about a dog and a red ball") from a story, in many phrasings.

Nouns are found without a tagger: a word is a noun when it mostly closes a phrase that an article opened.
"""

import random
import re
from collections import Counter

CLOSERS = set(
    "and to that in on with was is had said who for of at from but were so because went came would could did by up saw "
    "asked looked ran then when as into felt started wanted inside under too she he they it".split()
)
# Words that pass the test above but are not specific to a story.
VAGUE = set(
    "time day lot bit way thing one moment while end minute morning night sound noise voice idea thought reason rest other "
    "same first next middle top back side front way side name world place smile hug little big top bottom other two "
    "week year hour look while problem lesson long whole something everything feeling story mess new good nice more "
    "best most important safe happy sad old only hurry part piece kind start face hand head hands feet eyes mouth arm arms "
    "right left turn help answer question care fun outside home house inside way try minutes sad others days moral walk "
    "ground floor sky air plan bite heart sign owner faces body group distance line edge view sudden pass power names skin "
    "cross print stuff others step mark difference shape chance attention evening seat pair offer object goal".split()
)
# Characters of stories: verbs follow them, so the test for nouns misses them.
ACTORS = set(
    "dog cat bird bear rabbit mouse fox frog duck fish horse cow pig lion tiger elephant monkey bunny puppy kitten owl "
    "squirrel turtle bee ant butterfly princess king queen knight dragon robot monster fairy witch wizard giant farmer "
    "doctor teacher baker pirate clown dinosaur snake spider snail whale shark crab penguin sheep goat lamb chicken hen "
    "deer wolf mole hedgehog girl boy baby grandma grandpa policeman fireman sailor soldier crow bug worm bull "
    "donkey parrot camel zebra giraffe hippo beetle ladybug dolphin seal octopus lizard truck train car boat doll ball "
    "tree kite toy cake apple flower star moon cloud snowman".split()
)
# Nouns without an article.
MASS = set(
    "water food mud dirt snow sand rice glue paint flour honey milk butter cheese bread grass money candy hair fur jam sugar "
    "soup lemonade medicine fruit smoke music ice rain corn tape fire wood paper memory kindness friendship courage trash "
    "mail juice tea toast people sheep sunshine magic cotton gold wool meat pasta salad luck imagination truth".split()
)
COLOUR_OR_SIZE = set(
    "red blue green yellow orange purple pink brown white black golden silver big small little tiny huge old new pretty "
    "shiny magic soft round long tall lost brave kind lazy clever funny fluffy hungry wise friendly young".split()
)
WORD = re.compile(r"[A-Za-z']+|[.,!?\"]")
ARTICLES = {"a", "an", "the", "his", "her", "their"}


def noun_lexicon(stories: list, least: int = 12) -> dict:
    """Word -> number of stories it is in, for the words that end an article's phrase more often than not."""
    closed, seen, spread = Counter(), Counter(), Counter()
    for text in stories:
        words = WORD.findall(text)
        spread.update(set(w for w in words if w.islower()))
        for i in range(len(words) - 2):
            if words[i].lower() not in ARTICLES:
                continue
            j = i + 2 if words[i + 1] in COLOUR_OR_SIZE and i + 3 < len(words) else i + 1
            if words[j].isalpha() and words[j].islower():
                seen[words[j]] += 1
                closed[words[j]] += not words[j + 1][0].isalpha() or words[j + 1] in CLOSERS
    return {
        w: spread[w]
        for w, n in seen.items()
        if n >= least
        and closed[w] > 0.72 * n
        and seen[w] > 0.35 * spread[w]
        and len(w) > 2
        and w not in VAGUE
        and not w.endswith(("ly", "ed", "'s"))
    } | {w: spread[w] for w in ACTORS}


def topics(text: str, lexicon: dict, total: int) -> list:
    """Noun phrases and named characters that a story is about, the most specific first."""
    words = WORD.findall(text)
    count = Counter(w for w in words if w in lexicon)
    names = Counter(
        w
        for p, w in zip(words, words[1:])
        if w[0].isupper() and w.isalpha() and len(w) > 2 and p[0].islower()
    )
    phrases = {}
    for i in range(len(words) - 1):
        for adjective, noun in (("", words[i]), (words[i], words[i + 1])):
            if noun in count and noun not in phrases and (not adjective or adjective in COLOUR_OR_SIZE):
                if adjective or i == 0 or words[i - 1] not in COLOUR_OR_SIZE:
                    phrases[noun] = f"{adjective} {noun}".strip()
    ranked = sorted(
        count, key=lambda w: -count[w] * (2 if w in ACTORS else 1) / (1 + 10 * lexicon[w] / total)
    )
    found = [phrases.get(w, w) for w in ranked[:4]]
    for name, times in names.most_common(2):
        match = re.search(
            rf"\b(girl|boy|dog|cat|bear|rabbit|bird|mouse|fox|frog|duck|man|woman) (?:named|called) {name}\b",
            text,
        )
        if times >= 2 and name not in (
            "Mom",
            "Dad",
            "Mommy",
            "Daddy",
            "The",
            "Then",
            "But",
            "And",
            "She",
            "They",
        ):
            found.append(f"{match[1]} named {name}" if match else name)
    return found


def with_article(phrase: str, rng: random.Random) -> str:
    noun = phrase.split()[-1]
    if phrase[0].isupper() or noun in MASS or noun.endswith("s") and not noun.endswith("ss"):
        return phrase
    if rng.random() < 0.08:
        return phrase
    return ("an " if phrase[0] in "aeiou" else "a ") + phrase


ASKS = [
    "Write a story about {}",
    "Write a short story about {}",
    "Tell me a story about {}",
    "Tell a story about {}",
    "Can you tell me a story about {}?",
    "I want a story about {}",
    "Please write a story about {}",
    "A story about {}, please",
    "Make up a story about {}",
    "Write a simple story with {} in it",
    "Tell me a short story with {}",
    "Write a children's story about {}",
    "Could you write a story about {}?",
    "Write me a bedtime story about {}",
    "Story about {}",
    "Give me a little story about {}",
    "Please tell me a bedtime story about {}",
    "Let me hear a story about {}",
    "Write about {}",
    "{}",
]
OPEN_ASKS = [
    "Tell me a story",
    "Write a story",
    "Write a short story",
    "Tell me a bedtime story",
    "Please tell me a story",
    "Hello! Tell me a story",
    "Hi",
    "Hello",
    "Can you tell me a story?",
    "Write a story for a small child",
    "Tell me something nice",
    "I am bored. Tell me a story",
]
MORE_ASKS = [
    "Another one",
    "Tell me another story",
    "One more, please",
    "Now a different one",
    "Write another story",
    "And another?",
]
SYSTEMS = [
    "You are a helpful assistant.",
    "You tell short stories for small children.",
    "You are a storyteller.",
    "Answer with a story.",
]


def style(text: str, rng: random.Random) -> str:
    if rng.random() < 0.35:
        text = text[0].lower() + text[1:]
    if text[-1].isalnum() and rng.random() < 0.6:
        text += rng.choice([".", ".", "!", "."])
    return text


def instruction(text: str, lexicon: dict, total: int, rng: random.Random) -> str:
    found = topics(text, lexicon, total)
    if not found or rng.random() < 0.06:
        return style(rng.choice(OPEN_ASKS), rng)
    chosen = rng.sample(found, min(len(found), rng.choice([1, 2, 2, 2, 3])))
    named = [with_article(p, rng) for p in chosen]
    subject = named[0] if len(named) == 1 else ", ".join(named[:-1]) + " and " + named[-1]
    return style(rng.choice(ASKS).format(subject), rng)


def turn(role: str, content: str) -> str:
    return f"<|im_start|>{role}\n{content}<|im_end|>\n"


def conversation(text: str, lexicon: dict, total: int, rng: random.Random, second: str = "") -> str:
    system = turn("system", rng.choice(SYSTEMS)) if rng.random() < 0.12 else ""
    ask = instruction(text, lexicon, total, rng)
    chat = system + turn("user", ask) + turn("assistant", text)
    if second:
        again = rng.choice(MORE_ASKS) if rng.random() < 0.5 else instruction(second, lexicon, total, rng)
        chat += turn("user", style(again, rng)) + turn("assistant", second)
    return chat.rstrip("\n")

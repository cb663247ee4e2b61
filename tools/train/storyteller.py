"""The narration of a generated story: its characters, and sentences with their slots filled in."""

import random
import re

import storywords as words

PRONOUNS = {"girl": ("she", "her", "her"), "boy": ("he", "him", "his"), "beast": ("it", "it", "its")}


def article(noun: str) -> str:
    return ("an " if noun[0] in "aeiou" else "a ") + noun


class Character:
    def __init__(self, rng: random.Random, taken: set, beast_chance: float = 0.4):
        if rng.random() < beast_chance:
            self.species, self.joy, self.home = rng.choice(words.BEASTS)
            pool, self.sex = words.BEAST_NAMES, rng.choice(["girl", "boy"])
        else:
            self.sex = rng.choice(["girl", "boy"])
            self.species, self.joy = self.sex, rng.choice(["laughed", "clapped", "jumped for joy", "danced"])
            self.home = rng.choice(
                ["a small house", "a little town", "a village by the sea", "a white house on a hill"]
            )
            pool = words.GIRLS if self.sex == "girl" else words.BOYS
        self.name = rng.choice([n for n in pool if n not in taken])
        taken.add(self.name)
        self.he, self.him, self.his = PRONOUNS[self.sex]
        self.human = self.species == self.sex


class Teller:
    """Collects paragraphs; `say` adds one sentence out of several phrasings, with the slots filled in."""

    def __init__(self, rng: random.Random):
        self.rng, self.paragraphs, self.taken = rng, [[]], set()
        self.hero = Character(rng, self.taken)
        self.friend = Character(rng, self.taken, beast_chance=0.15 if self.hero.human else 0.9)
        elders = (
            ["Mom", "Dad", "Grandma", "Grandpa", "Aunt May"]
            if self.hero.human
            else ["Mother", "Father", "Grandma"]
        )
        colour, size = rng.choice(words.COLOURS), rng.choice(words.SIZES)
        toy = rng.choice(words.TOYS)
        self.slots = {
            "hero": self.hero.name,
            "he": self.hero.he,
            "him": self.hero.him,
            "his": self.hero.his,
            "species": self.hero.species,
            "joy": self.hero.joy,
            "home": self.hero.home,
            "friend": self.friend.name,
            "fhe": self.friend.he,
            "fhim": self.friend.him,
            "fhis": self.friend.his,
            "fspecies": self.friend.species,
            "elder": rng.choice(elders),
            "place": rng.choice(words.PLACES),
            "good": rng.choice(words.GOOD),
            "toy": toy,
            "colour": colour,
            "size": size,
        }
        self.slots["prize"] = f"{rng.choice([colour, size])} {toy}"

    def pick(self, *options):
        return self.rng.choice(options)

    def fill(self, text: str) -> str:
        text = re.sub(r"\{a:(\w+)\}", lambda m: article(self.slots[m[1]]), text)
        text = re.sub(
            r"\{(\w+)\}",
            lambda m: (
                str(self.slots[m[1].lower()])
                if m[1].islower()
                else str(self.slots[m[1].lower()]).capitalize()
            ),
            text,
        )
        return re.sub(r"([.!?] )([a-z])", lambda m: m[1] + m[2].upper(), text)

    def say(self, *options: str):
        sentence = self.fill(self.rng.choice(options))
        self.paragraphs[-1].append(sentence[0].upper() + sentence[1:])

    def maybe(self, chance: float, *options: str):
        if self.rng.random() < chance:
            self.say(*options)

    def pause(self):
        if self.paragraphs[-1]:
            self.paragraphs.append([])

    def text(self) -> str:
        return "\n".join(" ".join(p) for p in self.paragraphs if p)

    def introduce(self):
        if self.hero.human:
            self.say(
                "Once upon a time, there was a {good} {species} named {hero}.",
                "{hero} was a {good} {species} who lived in {home}.",
                "There once was a little {species} called {hero}.",
                "In {home} lived a {species} named {hero}.",
                "Once there was a {species} named {hero}. {He} was very {good}.",
            )
        else:
            self.say(
                "Once upon a time, there was a little {species} named {hero}.",
                "{hero} the {species} lived in {home}.",
                "In {home} lived {a:species} named {hero}.",
                "There once was a {good} {species} called {hero}. {He} lived in {home}.",
            )

    def befriend(self):
        self.say(
            "{his} best friend was {friend}.",
            "{hero} had a friend named {friend}, {a:fspecies}.",
            "Every day {he} played with {friend}, {his} best friend.",
            "{friend} the {fspecies} was {his} friend.",
        )

    def feel(self, mood: str):
        moods = {
            "happy": [
                "{hero} was very happy.",
                "{hero} felt warm inside.",
                "{hero} smiled from ear to ear.",
                "{hero} {joy}.",
                "It made {hero} so glad that {he} {joy}.",
            ],
            "sad": [
                "{hero} was sad.",
                "A tear ran down {his} cheek.",
                "{hero} sat down and felt sad.",
                "{hero} wanted to cry.",
            ],
        }
        self.say(*moods[mood])

    def close(self, kind: str):
        lesson = self.pick(*words.LESSONS[kind])
        self.slots["lesson"] = lesson
        self.say(
            "From that day on, {hero} knew that {lesson}.",
            "{hero} learned that {lesson}.",
            "And so {hero} found out that {lesson}.",
            'That night, {hero} thought, "{Lesson}."',
            '{elder} said, "You see, {lesson}." {hero} nodded.',
            "And they were happy until the sun went down.",
            "That night {hero} slept very well.",
            "It was the best day {hero} could remember.",
        )

"""Writes simple stories in which every event has a cause: a hero, a want, an obstacle, a helper and an ending.

    python storygen.py --count 12000 --seed 7 --out generated.txt

A plot is a function that tells its events in order; each sentence is chosen among several phrasings and each noun
among the lists of storywords.py, so that two stories rarely share more than a few sentences.
"""

import argparse
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
            self.home = rng.choice(["a small house", "a little town", "a village by the sea", "a white house on a hill"])
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
        elders = ["Mom", "Dad", "Grandma", "Grandpa", "Aunt May"] if self.hero.human else ["Mother", "Father", "Grandma"]
        colour, size = rng.choice(words.COLOURS), rng.choice(words.SIZES)
        toy = rng.choice(words.TOYS)
        self.slots = {
            "hero": self.hero.name, "he": self.hero.he, "him": self.hero.him, "his": self.hero.his,
            "species": self.hero.species, "joy": self.hero.joy, "home": self.hero.home,
            "friend": self.friend.name, "fhe": self.friend.he, "fhim": self.friend.him, "fhis": self.friend.his,
            "fspecies": self.friend.species, "elder": rng.choice(elders), "place": rng.choice(words.PLACES),
            "good": rng.choice(words.GOOD), "toy": toy, "colour": colour, "size": size,
        }
        self.slots["prize"] = f"{rng.choice([colour, size])} {toy}"

    def pick(self, *options):
        return self.rng.choice(options)

    def fill(self, text: str) -> str:
        text = re.sub(r"\{a:(\w+)\}", lambda m: article(self.slots[m[1]]), text)
        text = re.sub(r"\{(\w+)\}", lambda m: str(self.slots[m[1].lower()]) if m[1].islower() else
                      str(self.slots[m[1].lower()]).capitalize(), text)
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
            self.say("Once upon a time, there was a {good} {species} named {hero}.", "{hero} was a {good} {species} who lived in {home}.",
                     "There once was a little {species} called {hero}.", "In {home} lived a {species} named {hero}.",
                     "Once there was a {species} named {hero}. {He} was very {good}.")
        else:
            self.say("Once upon a time, there was a little {species} named {hero}.", "{hero} the {species} lived in {home}.",
                     "In {home} lived {a:species} named {hero}.", "There once was a {good} {species} called {hero}. {He} lived in {home}.")

    def befriend(self):
        self.say("{his} best friend was {friend}.", "{hero} had a friend named {friend}, {a:fspecies}.",
                 "Every day {he} played with {friend}, {his} best friend.", "{friend} the {fspecies} was {his} friend.")

    def feel(self, mood: str):
        moods = {
            "happy": ["{hero} was very happy.", "{hero} felt warm inside.", "{hero} smiled from ear to ear.", "{hero} {joy}.",
                      "It made {hero} so glad that {he} {joy}."],
            "sad": ["{hero} was sad.", "A tear ran down {his} cheek.", "{hero} sat down and felt sad.", "{hero} wanted to cry."],
        }
        self.say(*moods[mood])

    def close(self, kind: str):
        lesson = self.pick(*words.LESSONS[kind])
        self.slots["lesson"] = lesson
        self.say("From that day on, {hero} knew that {lesson}.", "{hero} learned that {lesson}.",
                 "And so {hero} found out that {lesson}.", "That night, {hero} thought, \"{Lesson}.\"",
                 "{elder} said, \"You see, {lesson}.\" {hero} nodded.", "And they were happy until the sun went down.",
                 "That night {hero} slept very well.", "It was the best day {hero} could remember.")


def lost_thing(t: Teller):
    first, second, found = t.rng.sample(words.SPOTS, 3)
    t.slots.update(first=first, second=second, found=found)
    t.introduce()
    t.say("{he} had {a:prize}, and {he} took it everywhere.", "More than anything, {he} loved {his} {prize}.",
          "{elder} had given {him} {a:prize}, and {he} was very proud of it.")
    t.say("One morning, the {toy} was gone.", "But one day {he} could not find the {toy}.", "One day {he} woke up, and the {toy} was not there.")
    t.pause()
    t.say("{hero} looked {first}, but it was not there.", "First {he} looked {first}. No {toy}.")
    t.say("Then {he} looked {second}. It was not there either.", "{he} looked {second} too, but found only dust.")
    t.feel("sad")
    t.pause()
    t.say("{friend} came by and asked, \"What is wrong?\"", "Then {friend}, {a:fspecies}, came along. \"Why are you so sad?\" {fhe} asked.")
    t.say("\"I lost my {toy},\" said {hero}.", "\"My {prize} is gone,\" {hero} said in a small voice.")
    t.say("\"Where did you play with it last?\" asked {friend}.", "\"Think back,\" said {friend}. \"Where were you yesterday?\"")
    t.say("{hero} thought hard. Then {he} remembered.", "{hero} closed {his} eyes and thought. \"Oh!\" {he} said.")
    t.say("They ran to look {found}, and there it was!", "Together they looked {found}. There was the {prize}!")
    t.feel("happy")
    t.say("\"Thank you, {friend},\" {he} said. \"Let us play with it together.\"", "\"You helped me think,\" said {hero}. They played with the {toy} all afternoon.")
    t.close("help")


def too_high(t: Teller):
    thing, where = t.rng.choice(words.HIGH)
    helper, how = t.rng.choice(words.REACHERS)
    t.slots.update(thing=thing, where=where, helper=helper, how=how.replace("{its}", "its"))
    t.introduce()
    t.say("One day {hero} went to {place} and looked up.", "One sunny day, {he} was walking near {place}.")
    t.say("There was {a:thing} at {where}.", "{he} saw {a:thing}. It was at {where}.")
    t.say("{he} wanted it very much.", "\"I want that {thing},\" said {hero}.")
    t.pause()
    t.say("{he} jumped, but {he} was too small.", "{hero} jumped as high as {he} could. It was not high enough.")
    t.say("{he} threw a stick at it, but the stick came down on {his} own head. Ouch!", "{he} stood on a box, but the box broke.",
          "{he} stood on a stone, but {he} still could not reach.")
    t.pause()
    t.say("{a:helper} saw {him} and asked, \"Do you need help?\"", "Just then {a:helper} came by. \"Can I help you?\" asked the {helper}.")
    t.say("\"Yes, please!\" said {hero}.", "{hero} was a little shy, but {he} said, \"Yes, please.\"")
    t.say("The {helper} {how}.", "So the {helper} {how}.")
    t.say("Now {hero} had the {thing}. \"Thank you!\" {he} said.", "{hero} held the {thing} tight. \"Thank you so much!\"")
    if thing in ("apple", "pear", "honey pot", "cookie jar"):
        t.say("{he} gave half to the {helper}, and they ate together.", "They sat down and shared it.")
    else:
        t.say("They played together until it was time to go home.", "\"You can play with me,\" said {hero}, and the {helper} did.")
    t.close("help")


def both_want(t: Teller):
    t.introduce()
    t.befriend()
    t.say("One day, they found {a:prize} at {place}.", "One day {elder} gave them {a:prize}.")
    t.say("\"It is mine!\" said {hero}. \"No, mine!\" said {friend}.", "{hero} wanted to have it first. {friend} wanted to have it first too.")
    t.pause()
    broken = t.rng.random() < 0.5
    if broken:
        t.say("They pulled and pulled until the {toy} broke.", "{hero} pulled one end and {friend} pulled the other. Crack! The {toy} broke.")
        t.say("They both stared at it. Nobody could play now.", "Now they had two pieces and no fun at all.")
        t.feel("sad")
        t.say("\"I am sorry,\" said {hero}. \"I am sorry too,\" said {friend}.", "\"We were silly,\" said {friend}. \"Let us mend it.\"")
        t.say("They asked {elder} for some glue, and they mended the {toy} together.", "With a bit of string and glue they made it whole again.")
    else:
        t.say("They shouted so loudly that {elder} came.", "{friend} turned around and walked away, and {hero} was left alone with the {toy}.")
        t.say("Playing alone was no fun.", "{hero} looked at the {toy}. It did not seem so nice any more.")
        t.say("\"You go first,\" {he} said to {friend}. \"Then it is my turn.\"", "{he} ran after {friend}. \"I am sorry. We can take turns.\"")
    t.pause()
    t.say("So they took turns, and they laughed a lot.", "This time they took turns. First {friend}, then {hero}, then {friend} again.")
    t.feel("happy")
    t.close("share")


def weather_turns(t: Teller):
    what, came, leftover, after = t.rng.choice(words.WEATHER)
    t.slots.update(what=what, came=came, leftover=leftover, after=after, indoors=t.rng.choice(words.INDOORS))
    t.introduce()
    t.befriend()
    t.say("They wanted to go to {place}.", "One day they planned a picnic at {place}.")
    t.say("But when they opened the door, {what} {came}.", "They put on their shoes, but then {what} {came}.")
    t.say("\"Oh no,\" said {friend}. \"We can not go now.\"", "{hero} looked out of the window and sighed.")
    t.pause()
    t.say("\"We can still have fun inside,\" said {hero}.", "{elder} said, \"A day inside can be a good day too.\"", "Then {friend} had an idea.")
    t.say("So they {indoors}.", "They {indoors}, and soon they forgot about {place}.")
    t.maybe(0.6, "{elder} brought them warm milk.", "{elder} watched and clapped.", "They laughed so much that their bellies hurt.")
    t.pause()
    t.say("When they looked up again, it had stopped.", "After a while, it stopped.")
    t.say("They ran out and {after}.", "Outside they {after} until supper.")
    t.feel("happy")
    t.say("\"I am glad that the day was not as we planned,\" said {friend}.", "\"That was two good days in one,\" said {hero}.")
    t.close("wait")


def new_skill(t: Teller):
    skill, clumsy, tip, triumph = t.rng.choice(words.SKILLS)
    t.slots.update(skill=skill, clumsy=clumsy, tip=tip, triumph=triumph)
    t.introduce()
    t.say("{he} wanted to learn to {skill}.", "All {his} friends could {skill}, but {he} could not.", "\"I want to {skill},\" {he} said one day.")
    t.say("On the first day, {he} {clumsy}.", "{he} tried, but {he} {clumsy}.")
    t.say("\"I will never learn it,\" said {hero}.", "{hero} felt bad and wanted to give up.", "Some children laughed, and {hero} went red.")
    t.pause()
    t.say("{elder} saw it and sat down beside {him}.", "{friend} the {fspecies} came and said, \"It was hard for me too.\"")
    t.say("\"Here is what you do,\" came the advice. \"You {tip}.\"", "\"Try this,\" {he} was told. \"{Tip}.\"")
    t.say("The next day {hero} tried again, and it went a little better.", "{hero} tried it that way. It was not perfect, but it was better.")
    t.say("{he} tried every day, in sun and in rain.", "{he} practiced every morning before breakfast.", "Day after day {he} worked at it.")
    t.pause()
    t.say("Then, one morning, {he} {triumph}.", "And after a week {he} {triumph}.")
    t.say("\"Look! Look!\" {he} called.", "\"I can {skill}!\" shouted {hero}.")
    t.say("Everyone cheered.", "{elder} gave {him} a big hug.", "{friend} clapped the loudest of all.")
    t.close("try")


def kindness_returns(t: Teller):
    creature, trouble, rescue, payback = t.rng.choice(words.TROUBLES)
    t.slots.update(creature=creature, trouble=trouble, rescue=rescue, payback=payback.replace("the hero", t.hero.name))
    t.introduce()
    t.say("One day, on the way to {place}, {he} heard a small cry.", "One day {he} was walking to {place} when {he} heard someone call for help.")
    t.say("It was {a:creature}. It {trouble}.", "There was a little {creature} that {trouble}.")
    t.say("\"Do not be afraid,\" said {hero}. \"I will help you.\"", "\"Poor thing,\" said {hero}.")
    t.say("{he} {rescue}.", "Very carefully, {he} {rescue}.")
    t.say("\"Thank you,\" said the {creature}. \"One day I will help you too.\"", "\"I will not forget this,\" said the {creature}.")
    t.maybe(0.6, "{hero} laughed. How could such a small {creature} help anyone?", "{hero} waved and went on.")
    t.pause()
    troubles = {
        "showed the way": "{hero} went too far into the woods and got lost.", "called a hundred": "{hero} had to bring a heavy basket home, and it was too much for one.",
        "flew high": "{hero} took a wrong turn and could not see the path.", "bit through": "{hero} stepped into a trap, and a rope held {his} leg.",
        "brought the lost": "{hero} dropped {his} {prize} into the deep water.", "led the way": "{hero} went into a dark cave and could not find the way out.",
        "found the way": "{hero} was lost in the fog.", "asked its mother": "{hero} was stuck on a little island when the water rose.",
        "carried": "the bridge broke, and {hero} was on the wrong side of the river.",
    }
    problem = next(v for k, v in troubles.items() if payback.startswith(k))
    t.say("Some days later, " + problem, "Not long after that, " + problem, "When the week was over, " + problem)
    t.say("{he} called, but nobody came.", "\"What can I do?\" {he} thought.", "{he} was afraid.")
    t.say("Then a small voice said, \"I am here.\" It was the {creature}.", "But the {creature} had heard {him}.")
    t.say("The {creature} {payback}, and {hero} was safe.", "At once the {creature} {payback}.")
    t.say("\"You helped me, so I help you,\" said the {creature}.", "\"Now we are friends,\" said {hero}.", "\"Thank you, little {creature},\" said {hero}.")
    t.close("kind")


def broken_rule(t: Teller):
    rule, result, repair = t.rng.choice(words.RULES)
    t.slots.update(rule=rule, result=result, repair=repair)
    t.introduce()
    t.say("{elder} always said, \"{hero}, do not {rule}.\"", "There was one rule: do not {rule}.")
    t.say("But one day {elder} was busy, and {hero} was bored.", "One day {he} was alone and thought, \"Why not?\"", "{he} wanted to know why.")
    t.say("So {he} did it anyway.", "{he} looked left and right. Then {he} did it.")
    t.pause()
    t.say("At once {result}.", "Oh no! {Result}.")
    t.feel("sad")
    t.maybe(0.5, "First {he} wanted to hide.", "{he} thought about running away.")
    t.say("But {he} went to {elder} and told the truth.", "\"{elder}!\" {he} called. \"I did a bad thing.\"")
    t.pause()
    t.say("{elder} was not happy, but {elder} came and {repair}.", "{elder} came quickly and {repair}.")
    t.say("\"I am glad that you told me,\" said {elder}.", "\"Now you know why I asked you not to,\" said {elder}.")
    t.say("\"I am sorry,\" said {hero}. \"I will listen next time.\"", "{hero} said sorry, and {he} meant it.")
    t.close(t.pick("obey", "truth"))


def made_gift(t: Teller):
    stuff, gift, source = t.rng.choice(words.CRAFTS)
    t.slots.update(stuff=stuff, gift=gift, source=source)
    t.introduce()
    t.say("Tomorrow was {friend}'s birthday.", "{his} friend {friend} had a birthday soon.")
    t.say("{hero} wanted to give {fhim} something nice, but {he} had no money.", "{hero} looked in {his} pocket. There was not one coin in it.")
    t.say("{he} saw {a:prize} in a shop, but it cost too much.", "\"What can I give {fhim}?\" {he} thought.")
    t.pause()
    t.say("{elder} said, \"The best gifts are made by hand.\"", "Then {he} had an idea.")
    t.say("{he} went to {source} and found some {stuff}.", "In {source} {he} found many {stuff}.".replace("In the beach", "At the beach"))
    t.say("{he} worked all afternoon, and out of the {stuff} {he} made {gift}.", "Piece by piece, {he} turned the {stuff} into {gift}.")
    t.maybe(0.4, "Once it fell apart, and {he} had to begin again.", "{his} fingers were tired, but {he} did not stop.")
    t.pause()
    t.say("At the party there were many shiny gifts.", "The next day {he} brought it to {friend}.")
    t.say("{hero} was shy. \"It is only a small thing,\" {he} said.", "{hero} held it out with both hands.")
    t.say("{friend} opened {fhis} eyes wide. \"You made this for me?\"", "\"It is beautiful!\" said {friend}.")
    t.say("\"It is the best gift of all,\" said {friend}, and hugged {him}.", "{friend} kept it next to {fhis} bed for a long, long time.")
    t.close("kind")


def night_noise(t: Teller):
    sign, cause = t.rng.choice(words.FEARS)
    t.slots.update(sign=sign, cause=cause)
    t.introduce()
    t.say("One night {he} could not sleep.", "It was dark, and {hero} lay in bed.", "One night there was no moon.")
    t.say("There was {sign}.", "Suddenly there was {sign}!")
    t.say("\"Is it a monster?\" thought {hero}.", "{his} heart went fast.", "{hero} pulled the blanket over {his} head.")
    t.pause()
    t.say("{he} waited, but it did not go away.", "\"Go away,\" {he} whispered. It did not go away.")
    t.say("So {he} called for {elder}.", "Then {he} thought of {friend}, who was always brave.", "At last {he} sat up. \"I want to know what it is,\" {he} said.")
    t.say("{hero} took a lamp and went closer, one step at a time.", "With a light in {his} hand, {he} went to look.")
    t.say("And what was it? It was only {cause}!", "{he} looked, and then {he} had to laugh. It was {cause}.")
    t.pause()
    t.say("\"So that is all!\" said {hero}.", "\"You did not scare me,\" said {hero}, \"or only a little.\"")
    t.say("{he} went back to bed and fell asleep.", "In the morning {he} told everyone about it, and they laughed together.")
    t.close("brave")


def seed_grows(t: Teller):
    plant, harvest, use = t.rng.choice(words.PLANTS)
    t.slots.update(plant=plant, harvest=harvest, use=use)
    t.introduce()
    t.say("{elder} gave {him} a seed. \"It will be {plant} one day,\" said {elder}.", "In spring, {he} got a seed from {elder}. It was the seed of {plant}.")
    t.say("{hero} put the seed in the ground and gave it water.", "{he} dug a small hole, put the seed in and covered it.")
    t.say("The next day {he} ran out to look. There was nothing.", "{he} sat down and waited. Nothing happened.")
    t.say("\"It does not work,\" said {hero}.", "\"Why is it so slow?\" {he} asked.")
    t.pause()
    t.say("\"Give it water and give it time,\" said {elder}.", "\"A seed works where you can not see it,\" said {elder}.")
    t.say("So {hero} gave it water every day.", "Each morning {he} brought a cup of water.")
    t.maybe(0.5, "When a cold night came, {he} put a cloth over the ground.", "When the sun was too hot, {he} made some shade with a big leaf.", "{friend} helped to pull out the weeds.")
    t.say("One morning a tiny green tip came out of the ground.", "Then, one day, there was something green!")
    t.say("It grew and grew, day by day.", "Week after week it grew taller.")
    t.pause()
    t.say("At the end of summer there were {harvest}.", "When the days got cool, it was full of {harvest}.".replace("full of pumpkin", "ready, a great big pumpkin"))
    t.say("They made {use} and asked {friend} to come.", "{elder} used it for {use}, and {friend} got some too.")
    t.feel("happy")
    t.close("wait")


def shy_newcomer(t: Teller):
    t.introduce()
    t.say("One day a new {fspecies} came to {place}. {fhis} name was {friend}.", "One day {he} saw someone new at {place}. It was {friend}, {a:fspecies}.")
    t.say("{friend} sat alone and did not say a word.", "{friend} stood far away and looked at the ground.")
    t.say("The others played and did not see {fhim}.", "\"Why does {fhe} not play with us?\" someone asked.")
    t.pause()
    t.say("{hero} remembered how it was to be new.", "{hero} thought, \"Maybe {fhe} is shy.\"")
    t.say("{he} took {his} {prize} and walked over.", "So {he} went over with {a:prize}.")
    t.say("\"Hello, I am {hero}. Do you want to play?\" {he} asked.", "\"Would you like to try my {toy}?\" asked {hero}.")
    t.say("{friend} looked up and smiled a little smile.", "At first {friend} said nothing. Then {fhe} nodded.")
    t.pause()
    t.say("Soon they were running and laughing.", "They played until the sun was low.")
    t.say("{friend} knew a game that nobody else knew, and {fhe} showed it to all of them.", "It turned out that {friend} could tell very funny stories.")
    t.say("Now everyone wanted to be {fhis} friend.", "\"Come back tomorrow!\" they all called.")
    t.say("\"Thank you for coming over,\" said {friend} to {hero}.", "\"You were the first to say hello,\" said {friend}. \"I will not forget it.\"")
    t.close("kind")


def missing_part(t: Teller):
    dish, missing, owner = t.rng.choice(words.DISHES)
    t.slots.update(dish=dish, missing=missing, owner=owner)
    t.introduce()
    t.say("One day {he} and {elder} wanted to make {dish}.", "It was a cold day, and {hero} wanted to make {dish} with {elder}.")
    t.say("They put everything on the table. But there was no {missing}.".replace("no eggs", "not one egg"), "\"Oh dear,\" said {elder}. \"We have no {missing}.\"")
    t.say("\"I will get some,\" said {hero}.", "{hero} put on {his} hat. \"I know who has some,\" {he} said.")
    t.pause()
    t.say("{he} went to {owner} and asked for {missing}.", "{he} knocked on the door of {owner}.".replace("of the shop", "of the little shop"))
    t.slots["trade"] = t.pick("carry some wood", "sweep the yard", "find a lost glove", "feed the hens", "pick up the fallen leaves")
    t.say("\"You can have some,\" was the answer, \"if you help me to {trade}.\"", "\"Gladly,\" came the answer. \"But first, please help me to {trade}.\"")
    t.say("{hero} worked hard, and soon it was done.", "That was not hard for {hero}.")
    t.say("{he} walked home with the {missing}, slowly, so that nothing would be lost.", "Then {he} ran home with the {missing}.")
    t.pause()
    t.say("They made {dish}, and the whole house smelled good.", "{elder} mixed and {hero} stirred. Then they waited.")
    t.say("\"Let us bring some to {owner},\" said {hero}.", "{hero} took a plate of it to {owner} to say thank you.")
    t.feel("happy")
    t.close(t.pick("share", "help"))


def the_race(t: Teller):
    t.introduce()
    t.befriend()
    t.say("There was a race at {place}, and the prize was {a:prize}.", "One day they ran a race. The winner would get {a:prize}.")
    t.say("{hero} had practiced for weeks.", "{friend} was the fastest of all, and {hero} wanted to win just once.")
    t.say("\"Ready, set, go!\" someone called, and they ran.", "The bell rang, and off they went.")
    t.pause()
    t.say("{hero} was in front. Then {he} heard a cry.", "Near the end, {hero} was first. Behind {him} somebody fell.")
    t.say("{friend} had tripped over a root and hurt {fhis} knee.", "It was {friend}. {fhis} leg was hurt.")
    t.say("{hero} looked at the finish. Then {he} looked at {friend}.", "{hero} could win now. But {he} stopped.")
    t.say("{he} turned around and helped {friend} up.", "{he} ran back. \"Lean on me,\" {he} said.")
    t.say("The others ran past them.", "Someone else won the {toy}.")
    t.pause()
    t.say("Together they walked over the line, last of all.", "They came in last, arm in arm.")
    t.say("But the crowd clapped louder for them than for the winner.", "Everyone stood up and cheered.")
    t.say("\"You could have won,\" said {friend}. \"I won a better thing,\" said {hero}.", "The winner came over and said, \"You should share this {toy} with me.\"")
    t.close("kind")


PLOTS = [lost_thing, too_high, both_want, weather_turns, new_skill, kindness_returns, broken_rule, made_gift, night_noise,
         seed_grows, shy_newcomer, missing_part, the_race]


def story(rng: random.Random) -> str:
    teller = Teller(rng)
    rng.choice(PLOTS)(teller)
    return teller.text()


def stories(count: int, seed: int) -> list:
    rng = random.Random(seed)
    return list(dict.fromkeys(story(rng) for _ in range(count)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=12000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    with open(options.out, "w") as file:
        for text in stories(options.count, options.seed):
            file.write(text + "\n<|endoftext|>\n")


if __name__ == "__main__":
    main()

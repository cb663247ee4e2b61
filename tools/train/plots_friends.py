"""Plots between friends, neighbours and strangers."""

import storywords as words
from storyteller import Teller


def both_want(t: Teller):
    t.introduce()
    t.befriend()
    t.say("One day, they found {a:prize} at {place}.", "One day {elder} gave them {a:prize}.")
    t.say(
        '"It is mine!" said {hero}. "No, mine!" said {friend}.',
        "{hero} wanted to have it first. {friend} wanted to have it first too.",
    )
    t.pause()
    broken = t.rng.random() < 0.5
    if broken:
        t.say(
            "They pulled and pulled until the {toy} broke.",
            "{hero} pulled one end and {friend} pulled the other. Crack! The {toy} broke.",
        )
        t.say("They both stared at it. Nobody could play now.", "Now they had two pieces and no fun at all.")
        t.feel("sad")
        t.say(
            '"I am sorry," said {hero}. "I am sorry too," said {friend}.',
            '"We were silly," said {friend}. "Let us mend it."',
        )
        t.say(
            "They asked {elder} for some glue, and they mended the {toy} together.",
            "With a bit of string and glue they made it whole again.",
        )
    else:
        t.say(
            "They shouted so loudly that {elder} came.",
            "{friend} turned around and walked away, and {hero} was left alone with the {toy}.",
        )
        t.say("Playing alone was no fun.", "{hero} looked at the {toy}. It did not seem so nice any more.")
        t.say(
            '"You go first," {he} said to {friend}. "Then it is my turn."',
            '{he} ran after {friend}. "I am sorry. We can take turns."',
        )
    t.pause()
    t.say(
        "So they took turns, and they laughed a lot.",
        "This time they took turns. First {friend}, then {hero}, then {friend} again.",
    )
    t.feel("happy")
    t.close("share")


def weather_turns(t: Teller):
    what, came, leftover, after = t.rng.choice(words.WEATHER)
    t.slots.update(what=what, came=came, leftover=leftover, after=after, indoors=t.rng.choice(words.INDOORS))
    t.introduce()
    t.befriend()
    t.say("They wanted to go to {place}.", "One day they planned a picnic at {place}.")
    t.say("But when they opened the door, {what} {came}.", "They put on their shoes, but then {what} {came}.")
    t.say('"Oh no," said {friend}. "We can not go now."', "{hero} looked out of the window and sighed.")
    t.pause()
    t.say(
        '"We can still have fun inside," said {hero}.',
        '{elder} said, "A day inside can be a good day too."',
        "Then {friend} had an idea.",
    )
    t.say("So they {indoors}.", "They {indoors}, and soon they forgot about {place}.")
    t.maybe(
        0.6,
        "{elder} brought them warm milk.",
        "{elder} watched and clapped.",
        "They laughed so much that their bellies hurt.",
    )
    t.pause()
    t.say("When they looked up again, it had stopped.", "After a while, it stopped.")
    t.say("They ran out and {after}.", "Outside they {after} until supper.")
    t.feel("happy")
    t.say(
        '"I am glad that the day was not as we planned," said {friend}.',
        '"That was two good days in one," said {hero}.',
    )
    t.close("wait")


def kindness_returns(t: Teller):
    creature, trouble, rescue, payback = t.rng.choice(words.TROUBLES)
    t.slots.update(
        creature=creature, trouble=trouble, rescue=rescue, payback=payback.replace("the hero", t.hero.name)
    )
    t.introduce()
    t.say(
        "One day, on the way to {place}, {he} heard a small cry.",
        "One day {he} was walking to {place} when {he} heard someone call for help.",
    )
    t.say("It was {a:creature}. It {trouble}.", "There was a little {creature} that {trouble}.")
    t.say('"Do not be afraid," said {hero}. "I will help you."', '"Poor thing," said {hero}.')
    t.say("{he} {rescue}.", "Very carefully, {he} {rescue}.")
    t.say(
        '"Thank you," said the {creature}. "One day I will help you too."',
        '"I will not forget this," said the {creature}.',
    )
    t.maybe(
        0.6, "{hero} laughed. How could such a small {creature} help anyone?", "{hero} waved and went on."
    )
    t.pause()
    troubles = {
        "showed the way": "{hero} went too far into the woods and got lost.",
        "called a hundred": "{hero} had to bring a heavy basket home, and it was too much for one.",
        "flew high": "{hero} took a wrong turn and could not see the path.",
        "bit through": "{hero} stepped into a trap, and a rope held {his} leg.",
        "brought the lost": "{hero} dropped {his} {prize} into the deep water.",
        "led the way": "{hero} went into a dark cave and could not find the way out.",
        "found the way": "{hero} was lost in the fog.",
        "asked its mother": "{hero} was stuck on a little island when the water rose.",
        "carried": "the bridge broke, and {hero} was on the wrong side of the river.",
    }
    problem = next(v for k, v in troubles.items() if payback.startswith(k))
    t.say(
        "Some days later, " + problem, "Not long after that, " + problem, "When the week was over, " + problem
    )
    t.say("{he} called, but nobody came.", '"What can I do?" {he} thought.', "{he} was afraid.")
    t.say(
        'Then a small voice said, "I am here." It was the {creature}.', "But the {creature} had heard {him}."
    )
    t.say("The {creature} {payback}, and {hero} was safe.", "At once the {creature} {payback}.")
    t.say(
        '"You helped me, so I help you," said the {creature}.',
        '"Now we are friends," said {hero}.',
        '"Thank you, little {creature}," said {hero}.',
    )
    t.close("kind")


def made_gift(t: Teller):
    stuff, gift, source = t.rng.choice(words.CRAFTS)
    t.slots.update(stuff=stuff, gift=gift, source=source)
    t.introduce()
    t.say("Tomorrow was {friend}'s birthday.", "{his} friend {friend} had a birthday soon.")
    t.say(
        "{hero} wanted to give {fhim} something nice, but {he} had no money.",
        "{hero} looked in {his} pocket. There was not one coin in it.",
    )
    t.say("{he} saw {a:prize} in a shop, but it cost too much.", '"What can I give {fhim}?" {he} thought.')
    t.pause()
    t.say('{elder} said, "The best gifts are made by hand."', "Then {he} had an idea.")
    t.say(
        "{he} went to {source} and found some {stuff}.",
        "In {source} {he} found many {stuff}.".replace("In the beach", "At the beach"),
    )
    t.say(
        "{he} worked all afternoon, and out of the {stuff} {he} made {gift}.",
        "Piece by piece, {he} turned the {stuff} into {gift}.",
    )
    t.maybe(
        0.4,
        "Once it fell apart, and {he} had to begin again.",
        "{his} fingers were tired, but {he} did not stop.",
    )
    t.pause()
    t.say("At the party there were many shiny gifts.", "The next day {he} brought it to {friend}.")
    t.say('{hero} was shy. "It is only a small thing," {he} said.', "{hero} held it out with both hands.")
    t.say('{friend} opened {fhis} eyes wide. "You made this for me?"', '"It is beautiful!" said {friend}.')
    t.say(
        '"It is the best gift of all," said {friend}, and hugged {him}.',
        "{friend} kept it next to {fhis} bed for a long, long time.",
    )
    t.close("kind")


def shy_newcomer(t: Teller):
    t.introduce()
    t.say(
        "One day a new {fspecies} came to {place}. {fhis} name was {friend}.",
        "One day {he} saw someone new at {place}. It was {friend}, {a:fspecies}.",
    )
    t.say("{friend} sat alone and did not say a word.", "{friend} stood far away and looked at the ground.")
    t.say("The others played and did not see {fhim}.", '"Why does {fhe} not play with us?" someone asked.')
    t.pause()
    t.say("{hero} remembered how it was to be new.", '{hero} thought, "Maybe {fhe} is shy."')
    t.say("{he} took {his} {prize} and walked over.", "So {he} went over with {a:prize}.")
    t.say(
        '"Hello, I am {hero}. Do you want to play?" {he} asked.',
        '"Would you like to try my {toy}?" asked {hero}.',
    )
    t.say(
        "{friend} looked up and smiled a little smile.", "At first {friend} said nothing. Then {fhe} nodded."
    )
    t.pause()
    t.say("Soon they were running and laughing.", "They played until the sun was low.")
    t.say(
        "{friend} knew a game that nobody else knew, and {fhe} showed it to all of them.",
        "It turned out that {friend} could tell very funny stories.",
    )
    t.say("Now everyone wanted to be {fhis} friend.", '"Come back tomorrow!" they all called.')
    t.say(
        '"Thank you for coming over," said {friend} to {hero}.',
        '"You were the first to say hello," said {friend}. "I will not forget it."',
    )
    t.close("kind")


def missing_part(t: Teller):
    dish, missing, owner = t.rng.choice(words.DISHES)
    t.slots.update(dish=dish, missing=missing, owner=owner)
    t.introduce()
    t.say(
        "One day {he} and {elder} wanted to make {dish}.",
        "It was a cold day, and {hero} wanted to make {dish} with {elder}.",
    )
    t.say(
        "They put everything on the table. But there was no {missing}.".replace("no eggs", "not one egg"),
        '"Oh dear," said {elder}. "We have no {missing}."',
    )
    t.say('"I will get some," said {hero}.', '{hero} put on {his} hat. "I know who has some," {he} said.')
    t.pause()
    t.say(
        "{he} went to {owner} and asked for {missing}.",
        "{he} knocked on the door of {owner}.".replace("of the shop", "of the little shop"),
    )
    t.slots["trade"] = t.pick(
        "carry some wood", "sweep the yard", "find a lost glove", "feed the hens", "pick up the fallen leaves"
    )
    t.say(
        '"You can have some," was the answer, "if you help me to {trade}."',
        '"Gladly," came the answer. "But first, please help me to {trade}."',
    )
    t.say("{hero} worked hard, and soon it was done.", "That was not hard for {hero}.")
    t.say(
        "{he} walked home with the {missing}, slowly, so that nothing would be lost.",
        "Then {he} ran home with the {missing}.",
    )
    t.pause()
    t.say(
        "They made {dish}, and the whole house smelled good.",
        "{elder} mixed and {hero} stirred. Then they waited.",
    )
    t.say(
        '"Let us bring some to {owner}," said {hero}.',
        "{hero} took a plate of it to {owner} to say thank you.",
    )
    t.feel("happy")
    t.close(t.pick("share", "help"))


def the_race(t: Teller):
    t.introduce()
    t.befriend()
    t.say(
        "There was a race at {place}, and the prize was {a:prize}.",
        "One day they ran a race. The winner would get {a:prize}.",
    )
    t.say(
        "{hero} had practiced for weeks.",
        "{friend} was the fastest of all, and {hero} wanted to win just once.",
    )
    t.say('"Ready, set, go!" someone called, and they ran.', "The bell rang, and off they went.")
    t.pause()
    t.say(
        "{hero} was in front. Then {he} heard a cry.",
        "Near the end, {hero} was first. Behind {him} somebody fell.",
    )
    t.say("{friend} had tripped over a root and hurt {fhis} knee.", "It was {friend}. {fhis} leg was hurt.")
    t.say(
        "{hero} looked at the finish. Then {he} looked at {friend}.",
        "{hero} could win now. But {he} stopped.",
    )
    t.say("{he} turned around and helped {friend} up.", '{he} ran back. "Lean on me," {he} said.')
    t.say("The others ran past them.", "Someone else won the {toy}.")
    t.pause()
    t.say("Together they walked over the line, last of all.", "They came in last, arm in arm.")
    t.say("But the crowd clapped louder for them than for the winner.", "Everyone stood up and cheered.")
    t.say(
        '"You could have won," said {friend}. "I won a better thing," said {hero}.',
        'The winner came over and said, "You should share this {toy} with me."',
    )
    t.close("kind")

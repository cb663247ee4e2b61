"""Plots about one hero who wants, loses, fears or learns something."""

import storywords as words
from storyteller import Teller


def lost_thing(t: Teller):
    first, second, found = t.rng.sample(words.SPOTS, 3)
    t.slots.update(first=first, second=second, found=found)
    t.introduce()
    t.say(
        "{he} had {a:prize}, and {he} took it everywhere.",
        "More than anything, {he} loved {his} {prize}.",
        "{elder} had given {him} {a:prize}, and {he} was very proud of it.",
    )
    t.say(
        "One morning, the {toy} was gone.",
        "But one day {he} could not find the {toy}.",
        "One day {he} woke up, and the {toy} was not there.",
    )
    t.pause()
    t.say("{hero} looked {first}, but it was not there.", "First {he} looked {first}. No {toy}.")
    t.say(
        "Then {he} looked {second}. It was not there either.",
        "{he} looked {second} too, but found only dust.",
    )
    t.feel("sad")
    t.pause()
    t.say(
        '{friend} came by and asked, "What is wrong?"',
        'Then {friend}, {a:fspecies}, came along. "Why are you so sad?" {fhe} asked.',
    )
    t.say('"I lost my {toy}," said {hero}.', '"My {prize} is gone," {hero} said in a small voice.')
    t.say(
        '"Where did you play with it last?" asked {friend}.',
        '"Think back," said {friend}. "Where were you yesterday?"',
    )
    t.say(
        "{hero} thought hard. Then {he} remembered.", '{hero} closed {his} eyes and thought. "Oh!" {he} said.'
    )
    t.say(
        "They ran to look {found}, and there it was!", "Together they looked {found}. There was the {prize}!"
    )
    t.feel("happy")
    t.say(
        '"Thank you, {friend}," {he} said. "Let us play with it together."',
        '"You helped me think," said {hero}. They played with the {toy} all afternoon.',
    )
    t.close("help")


def too_high(t: Teller):
    thing, where = t.rng.choice(words.HIGH)
    helper, how = t.rng.choice(words.REACHERS)
    t.slots.update(thing=thing, where=where, helper=helper, how=how.replace("{its}", "its"))
    t.introduce()
    t.say("One day {hero} went to {place} and looked up.", "One sunny day, {he} was walking near {place}.")
    t.say("There was {a:thing} at {where}.", "{he} saw {a:thing}. It was at {where}.")
    t.say("{he} wanted it very much.", '"I want that {thing}," said {hero}.')
    t.pause()
    t.say(
        "{he} jumped, but {he} was too small.", "{hero} jumped as high as {he} could. It was not high enough."
    )
    t.say(
        "{he} threw a stick at it, but the stick came down on {his} own head. Ouch!",
        "{he} stood on a box, but the box broke.",
        "{he} stood on a stone, but {he} still could not reach.",
    )
    t.pause()
    t.say(
        '{a:helper} saw {him} and asked, "Do you need help?"',
        'Just then {a:helper} came by. "Can I help you?" asked the {helper}.',
    )
    t.say('"Yes, please!" said {hero}.', '{hero} was a little shy, but {he} said, "Yes, please."')
    t.say("The {helper} {how}.", "So the {helper} {how}.")
    t.say(
        'Now {hero} had the {thing}. "Thank you!" {he} said.',
        '{hero} held the {thing} tight. "Thank you so much!"',
    )
    if thing in ("apple", "pear", "honey pot", "cookie jar"):
        t.say("{he} gave half to the {helper}, and they ate together.", "They sat down and shared it.")
    else:
        t.say(
            "They played together until it was time to go home.",
            '"You can play with me," said {hero}, and the {helper} did.',
        )
    t.close("help")


def new_skill(t: Teller):
    skill, clumsy, tip, triumph = t.rng.choice(words.SKILLS)
    t.slots.update(skill=skill, clumsy=clumsy, tip=tip, triumph=triumph)
    t.introduce()
    t.say(
        "{he} wanted to learn to {skill}.",
        "All {his} friends could {skill}, but {he} could not.",
        '"I want to {skill}," {he} said one day.',
    )
    t.say("On the first day, {he} {clumsy}.", "{he} tried, but {he} {clumsy}.")
    t.say(
        '"I will never learn it," said {hero}.',
        "{hero} felt bad and wanted to give up.",
        "Some children laughed, and {hero} went red.",
    )
    t.pause()
    t.say(
        "{elder} saw it and sat down beside {him}.",
        '{friend} the {fspecies} came and said, "It was hard for me too."',
    )
    t.say('"Here is what you do," came the advice. "You {tip}."', '"Try this," {he} was told. "{Tip}."')
    t.say(
        "The next day {hero} tried again, and it went a little better.",
        "{hero} tried it that way. It was not perfect, but it was better.",
    )
    t.say(
        "{he} tried every day, in sun and in rain.",
        "{he} practiced every morning before breakfast.",
        "Day after day {he} worked at it.",
    )
    t.pause()
    t.say("Then, one morning, {he} {triumph}.", "And after a week {he} {triumph}.")
    t.say('"Look! Look!" {he} called.', '"I can {skill}!" shouted {hero}.')
    t.say("Everyone cheered.", "{elder} gave {him} a big hug.", "{friend} clapped the loudest of all.")
    t.close("try")


def broken_rule(t: Teller):
    rule, result, repair = t.rng.choice(words.RULES)
    t.slots.update(rule=rule, result=result, repair=repair)
    t.introduce()
    t.say('{elder} always said, "{hero}, do not {rule}."', "There was one rule: do not {rule}.")
    t.say(
        "But one day {elder} was busy, and {hero} was bored.",
        'One day {he} was alone and thought, "Why not?"',
        "{he} wanted to know why.",
    )
    t.say("So {he} did it anyway.", "{he} looked left and right. Then {he} did it.")
    t.pause()
    t.say("At once {result}.", "Oh no! {Result}.")
    t.feel("sad")
    t.maybe(0.5, "First {he} wanted to hide.", "{he} thought about running away.")
    t.say("But {he} went to {elder} and told the truth.", '"{elder}!" {he} called. "I did a bad thing."')
    t.pause()
    t.say("{elder} was not happy, but {elder} came and {repair}.", "{elder} came quickly and {repair}.")
    t.say(
        '"I am glad that you told me," said {elder}.', '"Now you know why I asked you not to," said {elder}.'
    )
    t.say('"I am sorry," said {hero}. "I will listen next time."', "{hero} said sorry, and {he} meant it.")
    t.close(t.pick("obey", "truth"))


def night_noise(t: Teller):
    sign, cause = t.rng.choice(words.FEARS)
    t.slots.update(sign=sign, cause=cause)
    t.introduce()
    t.say(
        "One night {he} could not sleep.",
        "It was dark, and {hero} lay in bed.",
        "One night there was no moon.",
    )
    t.say("There was {sign}.", "Suddenly there was {sign}!")
    t.say(
        '"Is it a monster?" thought {hero}.',
        "{his} heart went fast.",
        "{hero} pulled the blanket over {his} head.",
    )
    t.pause()
    t.say("{he} waited, but it did not go away.", '"Go away," {he} whispered. It did not go away.')
    t.say(
        "So {he} called for {elder}.",
        "Then {he} thought of {friend}, who was always brave.",
        'At last {he} sat up. "I want to know what it is," {he} said.',
    )
    t.say(
        "{hero} took a lamp and went closer, one step at a time.",
        "With a light in {his} hand, {he} went to look.",
    )
    t.say("And what was it? It was only {cause}!", "{he} looked, and then {he} had to laugh. It was {cause}.")
    t.pause()
    t.say('"So that is all!" said {hero}.', '"You did not scare me," said {hero}, "or only a little."')
    t.say(
        "{he} went back to bed and fell asleep.",
        "In the morning {he} told everyone about it, and they laughed together.",
    )
    t.close("brave")


def seed_grows(t: Teller):
    plant, harvest, use = t.rng.choice(words.PLANTS)
    t.slots.update(plant=plant, harvest=harvest, use=use)
    t.introduce()
    t.say(
        '{elder} gave {him} a seed. "It will be {plant} one day," said {elder}.',
        "In spring, {he} got a seed from {elder}. It was the seed of {plant}.",
    )
    t.say(
        "{hero} put the seed in the ground and gave it water.",
        "{he} dug a small hole, put the seed in and covered it.",
    )
    t.say(
        "The next day {he} ran out to look. There was nothing.", "{he} sat down and waited. Nothing happened."
    )
    t.say('"It does not work," said {hero}.', '"Why is it so slow?" {he} asked.')
    t.pause()
    t.say(
        '"Give it water and give it time," said {elder}.',
        '"A seed works where you can not see it," said {elder}.',
    )
    t.say("So {hero} gave it water every day.", "Each morning {he} brought a cup of water.")
    t.maybe(
        0.5,
        "When a cold night came, {he} put a cloth over the ground.",
        "When the sun was too hot, {he} made some shade with a big leaf.",
        "{friend} helped to pull out the weeds.",
    )
    t.say("One morning a tiny green tip came out of the ground.", "Then, one day, there was something green!")
    t.say("It grew and grew, day by day.", "Week after week it grew taller.")
    t.pause()
    t.say(
        "At the end of summer there were {harvest}.",
        "When the days got cool, it was full of {harvest}.".replace(
            "full of pumpkin", "ready, a great big pumpkin"
        ),
    )
    t.say(
        "They made {use} and asked {friend} to come.", "{elder} used it for {use}, and {friend} got some too."
    )
    t.feel("happy")
    t.close("wait")

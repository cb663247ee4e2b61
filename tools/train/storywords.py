"""The words of the story generator: characters, places, things, and reasons why things go wrong."""

GIRLS = (
    "Lily Mia Anna Sara Lucy Emma Molly Ruby Nora Ella Daisy Rosie Ivy Clara Zoe Amy Kate Poppy Tina Jane "
    "Maya Alice Hazel Beth Grace Sue Lola Penny Mary Jenny"
).split()
BOYS = (
    "Tom Ben Max Sam Tim Jack Leo Finn Noah Oscar Billy Jake Adam Luke Owen Toby Peter Danny Fred Joe "
    "Harry Ravi Omar Hugo Eli Carl Theo Andy Mark Bob"
).split()

# Animals that can be a hero: kind, the sound they make when pleased, where they live.
BEASTS = [
    ("rabbit", "hopped", "a burrow under the hill"),
    ("bear", "danced", "a cave in the woods"),
    ("fox", "ran in circles", "a den by the stream"),
    ("mouse", "squeaked", "a tiny hole in the wall"),
    ("duck", "quacked", "a nest by the pond"),
    ("frog", "jumped up and down", "a pond full of lilies"),
    ("squirrel", "flicked a bushy tail", "an old oak tree"),
    ("hedgehog", "rolled over and over", "a pile of dry leaves"),
    ("kitten", "purred", "a basket in the kitchen"),
    ("puppy", "wagged and barked", "a little red house in the yard"),
    ("turtle", "smiled a slow smile", "a quiet lake"),
    ("owl", "hooted", "a hollow tree"),
    ("pig", "oinked", "a farm at the end of the road"),
    ("elephant", "swung a long trunk", "the tall green grass"),
    ("monkey", "clapped", "the top of the jungle trees"),
    ("lamb", "skipped", "a sunny field"),
    ("penguin", "flapped", "a big block of ice"),
    ("beaver", "slapped the water", "a dam across the river"),
]
BEAST_NAMES = (
    "Pip Dot Bruno Nibbles Hop Tiny Rusty Bella Coco Momo Fluff Biscuit Pepper Otto Willow Acorn Ziggy Bubbles "
    "Ginger Button Teddy Milo Sunny Clover Muffin"
).split()

PLACES = [
    "the park",
    "the garden",
    "the forest",
    "the beach",
    "the meadow",
    "the river",
    "the playground",
    "the farm",
    "the hill",
    "the pond",
    "the market",
    "the field behind the house",
]
SPOTS = [
    "under the bed",
    "behind the sofa",
    "in the tall grass",
    "under a big leaf",
    "behind the old tree",
    "in the toy box",
    "under the table",
    "next to the gate",
    "in the flower bed",
    "on top of the shelf",
    "in a pile of leaves",
    "beside the well",
    "under the bench",
    "inside a boot",
]
COLOURS = "red blue green yellow orange purple pink brown white black golden silver".split()
SIZES = "big small little tiny huge long round".split()
TOYS = [
    "ball",
    "kite",
    "doll",
    "toy car",
    "toy boat",
    "drum",
    "teddy bear",
    "hat",
    "scarf",
    "book",
    "balloon",
    "hoop",
    "toy train",
    "button",
    "whistle",
    "paintbrush",
    "marble",
    "cup",
    "bell",
    "puzzle",
    "spinning top",
    "blanket",
    "bucket",
    "ribbon",
    "key",
    "lantern",
]
FOODS = [
    "apple",
    "pear",
    "cookie",
    "carrot",
    "piece of cake",
    "banana",
    "sandwich",
    "plum",
    "peach",
    "berry pie",
    "slice of bread",
    "bowl of soup",
]
# Things that hang too high, and where they grow or get stuck.
HIGH = [
    ("apple", "the highest branch of the apple tree"),
    ("pear", "the top of the pear tree"),
    ("kite", "the top of a tall tree"),
    ("balloon", "a branch above the path"),
    ("honey pot", "the top shelf"),
    ("ball", "the roof of the shed"),
    ("hat", "the church fence"),
    ("cookie jar", "the top of the cupboard"),
    ("scarf", "the tip of the flag pole"),
]
# Helpers for high things, and how they help.
REACHERS = [
    ("bird", "flew up and picked it with {its} beak"),
    ("giraffe", "stretched {its} long neck and took it down"),
    ("squirrel", "ran up as quick as the wind and pushed it loose"),
    ("monkey", "swung up and threw it down gently"),
    ("cat", "climbed up on soft paws and nudged it until it fell"),
    ("tall man", "reached up with one long arm and took it down"),
    ("farmer", "brought a ladder and climbed up, step by step"),
]
# Things to learn: the clumsy first try, the tip, the moment of success.
SKILLS = [
    (
        "swim",
        "splashed and sank and came up coughing",
        "kick your legs like a frog",
        "moved through the water like a fish",
    ),
    (
        "ride a bike",
        "wobbled and fell into a bush",
        "look ahead and not at your feet",
        "rode all the way down the lane",
    ),
    (
        "whistle",
        "blew and blew, but only air came out",
        "make your lips small and round",
        "made a clear, high sound",
    ),
    (
        "climb the big rock",
        "slid back down again and again",
        "find a place for each foot first",
        "stood on the very top",
    ),
    (
        "bake bread",
        "made a loaf as hard as a stone",
        "let the dough rest and wait",
        "pulled out a loaf that was soft and warm",
    ),
    (
        "draw a horse",
        "drew something that looked like a table",
        "look at a real horse for a long time",
        "drew a horse that seemed to run",
    ),
    (
        "skip rope",
        "got tangled in the rope at once",
        "count slowly and jump on three",
        "jumped twenty times without a stop",
    ),
    ("tie a knot", "made a mess of loops", "make one loop, then go around it", "made a neat, strong knot"),
    (
        "catch a ball",
        "dropped the ball every time",
        "watch the ball until it is in your hands",
        "caught it ten times in a row",
    ),
    (
        "sing the spring song",
        "forgot the words in the middle",
        "learn one line each day",
        "sang it from start to end",
    ),
    ("skate", "slipped and sat down hard", "bend your knees a little", "glided across the ice"),
    ("read", "mixed up all the letters", "say the sounds one by one", "read a whole page out loud"),
]
# Small creatures in trouble: the trouble, how they are freed, and how they return the favour later.
TROUBLES = [
    (
        "bee",
        "had fallen into the water",
        "held out a leaf so that it could climb on",
        "showed the way home by flying ahead",
    ),
    (
        "ant",
        "was stuck in a drop of honey",
        "lifted it out with a blade of grass",
        "called a hundred friends to carry the heavy load",
    ),
    (
        "bird",
        "had a foot caught in a string",
        "pulled the string away, bit by bit",
        "flew high to see where the path was",
    ),
    ("mouse", "had fallen into a deep pot", "put a stick into the pot like a bridge", "bit through the rope"),
    (
        "fish",
        "lay on the sand, far from the water",
        "carried it back to the sea with both hands",
        "brought the lost thing up from the deep",
    ),
    (
        "butterfly",
        "was caught in a web",
        "blew softly until the web broke",
        "led the way out with its bright wings",
    ),
    (
        "kitten",
        "sat crying at the top of a wall",
        "held out both arms and talked to it until it jumped",
        "found the way back by its nose",
    ),
    (
        "duckling",
        "could not find its mother",
        "walked with it along the bank until they heard a quack",
        "asked its mother to carry a message home",
    ),
    (
        "turtle",
        "lay on its back and could not turn over",
        "tipped it gently back onto its feet",
        "carried the hero over the water on its shell",
    ),
]
# Rules, the consequence of breaking them, and how it is put right.
RULES = [
    ("touch the hot stove", "the stove was hot and burned one finger", "held the finger under cold water"),
    (
        "go near the deep pond",
        "the bank was wet, and one foot slid into the cold water",
        "pulled until both feet were dry again",
    ),
    ("eat all the berries", "a tummy ache came, and it was a bad one", "made a cup of warm tea"),
    ("play with the big scissors", "the new curtain was cut in two", "sewed the curtain together again"),
    ("open the gate", "the hens ran out onto the road", "caught the hens one by one"),
    ("climb the old ladder", "a step broke with a loud crack", "held the ladder and helped each foot down"),
    ("run in the house", "the blue vase fell and broke", "swept up every piece"),
    ("shake the paint pot", "paint went all over the floor", "brought a bucket and two cloths"),
    ("wake the sleeping dog", "the dog jumped up and barked very loudly", "calmed the dog with a soft voice"),
]
FEARS = [
    ("a tapping sound at the window", "a branch that moved in the wind"),
    ("a dark shape in the corner", "a coat on a chair"),
    ("a scratching sound under the floor", "a family of mice making a nest"),
    ("a low growl in the night", "Grandpa snoring in the next room"),
    ("two bright eyes in the garden", "the cat from next door"),
    ("a moan behind the door", "the wind in the keyhole"),
    ("a splash in the bathroom", "the tap that was not turned off"),
    ("a big shadow on the wall", "a small moth in front of the lamp"),
    ("a bump in the attic", "an old ball that had rolled off a box"),
]
PLANTS = [
    ("a bean", "beans", "soup"),
    ("a sunflower", "seeds", "food for the birds"),
    ("a pumpkin", "pumpkin", "pie"),
    ("a tomato", "tomatoes", "salad"),
    ("a strawberry", "strawberries", "jam"),
    ("a carrot", "carrots", "a warm stew"),
    ("an apple tree", "apples", "a cake"),
    ("a rose", "roses", "a bunch of flowers"),
]
DISHES = [
    ("a cake", "eggs", "the farmer"),
    ("a pie", "apples", "the neighbor"),
    ("soup", "carrots", "the old lady next door"),
    ("pancakes", "milk", "the milkman"),
    ("cookies", "sugar", "the baker"),
    ("bread", "flour", "the miller"),
    ("jam", "berries", "the boy down the road"),
    ("pizza", "cheese", "the shop on the corner"),
]
CRAFTS = [
    ("shells", "a necklace", "the beach"),
    ("leaves", "a crown", "the forest"),
    ("old buttons", "a picture", "the attic"),
    ("feathers", "a soft fan", "the pond"),
    ("smooth stones", "a tiny tower", "the river"),
    ("wild flowers", "a bright garland", "the meadow"),
    ("sticks", "a little house for birds", "the woods"),
    ("scraps of cloth", "a small doll", "the sewing box"),
    ("pine cones", "a family of hedgehogs", "the hill"),
]
GOOD = "kind brave clever gentle cheerful curious helpful patient friendly careful".split()
LESSONS = {
    "help": ["it is good to ask for help", "friends make hard things easy", "everyone is good at something"],
    "share": [
        "sharing makes things more fun",
        "a thing is twice as nice when two enjoy it",
        "a friend is worth more than a toy",
    ],
    "try": [
        "trying again is how we learn",
        "nobody is good at something on the first day",
        "a small step each day goes a long way",
    ],
    "kind": [
        "kindness always finds its way back",
        "nobody is too small to help",
        "a good deed is never lost",
    ],
    "obey": ["rules keep us safe", "it is wise to listen", "it is better to ask first"],
    "truth": ["telling the truth makes the heart light", "the truth is the best way out of trouble"],
    "brave": [
        "many scary things are small when you look at them",
        "being brave means looking even when you are afraid",
    ],
    "wait": ["good things take time", "waiting can be hard, but it is worth it"],
}
WEATHER = [
    ("rain", "began to fall", "puddles", "jumped in the puddles"),
    ("snow", "came down thick and fast", "snow", "built a snowman"),
    ("a strong wind", "began to blow", "leaves", "ran after the leaves"),
    ("fog", "rolled in", "mist", "played hide and seek in the mist"),
]
INDOORS = [
    "built a castle out of blankets",
    "put on a play with paper hats",
    "baked little cakes",
    "painted pictures of the sea",
    "made boats out of paper",
    "told stories under the table",
    "played music on pots and pans",
]

"""Random expressions and random whitespace around tags, to cover their combinations."""

VARIABLES = {
    "a": 3, "b": -2, "x": 1.5, "s": "Some text, é☃", "e": "", "t": True, "n": None, "l": [1, "two", None, 4.0],
    "d": {"k": "v", "n": {"m": [1, 2]}}, "nested": [[1, 2], ["x"], []],
}
ATOMS = ["a", "b", "x", "s", "e", "t", "n", "l", "d", "nested", "missing", "0", "1", "2", "-1", "0.5", "'q'", "'two'",
         "''", "[]", "{}", "[a, b]", "(1, 'z')", "{'k': a}", "true", "none", "d.k", "d.n", "d['n']['m']", "l[0]", "s[1:3]",
         "s[::-1]", "l[1:]", "nested[:2]"]
BINARY = ["+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", ">", "<=", ">=", "and", "or", "in", "not in"]
FILTERS = ["length", "string", "upper", "lower", "trim", "first", "last", "list", "tojson", "default('dflt')",
           "default(0, true)", "join('|')", "int", "float", "abs", "sort", "reverse|list", "unique|list", "title",
           "capitalize", "replace('t', 'T')", "items|list", "map('string')|list", "select|list", "sum", "min", "max",
           "round", "e", "safe", "dictsort", "batch(2)|list", "indent", "tojson(indent=2)", "count"]
TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping", "sequence",
         "iterable", "true", "false", "odd", "even", "callable", "lower", "upper", "in l", "eq 3", "sameas none"]
METHODS = [".strip()", ".upper()", ".split(',')", ".split()", ".startswith('S')", ".get('k')", ".items()|list", ".keys()",
           ".find('t')", ".k", ".n.m", "[0]", "[-1]", "['k']", ".title()", ".rstrip('☃')"]
SPACES = ["", " ", "\n", "  \n", "\n  ", "\t", "\n\n", " \n \n "]


def expression(r, depth=0):
    pick = r.random()
    if depth > 3 or pick < 0.25:
        return r.choice(ATOMS)
    inner = lambda: expression(r, depth + 1)
    if pick < 0.5:
        return f"({inner()} {r.choice(BINARY)} {inner()})"
    if pick < 0.65:
        return f"{inner()}|{r.choice(FILTERS)}"
    if pick < 0.75:
        return f"({inner()} is {r.choice(['', 'not '])}{r.choice(TESTS)})"
    if pick < 0.88:
        return f"({inner()}){r.choice(METHODS)}"
    if pick < 0.94:
        return f"({inner()} if {inner()} else {inner()})"
    return r.choice(["not {}", "-({})", "[{}, 1]", "{{'z': {}}}"]).format(inner())


def layout(r):
    space = lambda: r.choice(SPACES)
    sign = lambda: r.choice(["", "", "-", "+"])
    minus = lambda: r.choice(["", "", "-"])
    tags = ["{%" + sign() + " if t " + sign() + "%}", "{%" + sign() + " endif " + sign() + "%}"]
    tags += ["{%" + sign() + " for i in [1, 2] " + sign() + "%}", "{%" + sign() + " endfor " + sign() + "%}"]
    body = [tags[0], space() + "w" + space(), "{{" + minus() + " a " + minus() + "}}", space(), tags[2], space(),
            "{#" + sign() + " c " + sign() + "#}", space(), "{{" + minus() + "i" + minus() + "}}", space(), tags[3],
            space(), "{%" + sign() + " raw " + minus() + "%}", space() + "{{r}}" + space(),
            "{%" + sign() + " endraw " + sign() + "%}", space(), tags[1], space() + "end" + space()]
    return space() + "".join(body)


def case(r):
    if r.random() < 0.3:
        return layout(r), VARIABLES
    return "{{ " + expression(r) + " }}", VARIABLES

"""Expressions, each printed on its own with the same variables."""

VARIABLES = {
    "t": True, "f": False, "n": None, "zero": 0, "i": 7, "neg": -3, "x": 2.5, "big": 1e22, "tiny": 1e-7,
    "s": "Hello World", "e": "", "u": "héllo wörld ☃ 𝄞", "ws": " \t pad \n", "q": "it's \"quoted\"",
    "inf": "inf", "nan": "nan", "minf": "-inf", "html": "<a href='x'>&\"</a>", "lines": "one\ntwo\n\nthree\n", "csv": "a,b,,c",
    "l": [3, 1, 2], "mixed": [1, "a", None, True, 2.0, [1], {"k": "v"}], "names": ["bob", "Alice", "carol", "BOB"],
    "d": {"b": 1, "a": [1, 2], "c": {"d": None}}, "el": [], "ed": {},
    "users": [{"name": "ann", "age": 30, "tags": ["x"]}, {"name": "Bob", "age": 25}, {"name": "cy", "age": 30}],
    "keys": {"items": 1, "keys": "k", "get": None},
    "googol": 10**100, "minus_googol": -(10**100), "two_to_70": 2**70,
    "links": "see http://example.com/a?b=1&c=2, www.foo.org. (https://en.wikipedia.org/wiki/X_(y)) <https://a.b> me@site.net "
             "mailto:joe@x.com ftp://f.org/x tel:123 ftp: HTTP://UP.COM http://127.0.0.1:80/ http://[::1]/ foo.com\tbär.de "
             "xn--p1ai.com/ü http://xn--p1ai http:// a@b a@b.c. www.x (see foo.net/a,b). &lt; <b>foo.org</b> é@ü.de",
    "huge": 2**64 - 1, "schema": {"maximum": 2**64 - 1, "minimum": -(2**63)}, "german": "straße", "greek": "ΟΔΥΣΣΕΥΣ ΑΣ", "tabs": "a\tbc\t\td",
    "tags": "<p>one <b>two</b>\n<!-- no --> three &amp; &lt;four&gt;</p>",
    "prose": "The quick brown fox jumps over the lazy dog, well-known for its long-winded-ness.\nA second line.",
}

EXPRESSIONS = r"""
t ~ f ~ n
[t, f, n, 1, -2, 1.0, 'a', "it's", 'say "x"', 'both \' and "']
(1,)
(1, 'a')
()
{'a': 1, 2: [n], (1, 2): 'x', none: t}
[1.0, 1e16, 1e15, 123456789012345680.0, 1e-4, 1e-5, 0.1, 1/3, 2.5e-10, -0.0, 1e22]
big ~ ' ' ~ tiny ~ ' ' ~ x
1_000 + 0x1f + 0b101 + 0o17
1 + 2 * 3 - 4 / 2
7 // 2 ~ ' ' ~ -7 // 2 ~ ' ' ~ 7 % 3 ~ ' ' ~ -7 % 3 ~ ' ' ~ 7 % -3
7.5 // 2 ~ ' ' ~ -7.5 // 2 ~ ' ' ~ -7.5 % 2
2 ** 10 ~ ' ' ~ 2 ** -1 ~ ' ' ~ 2 ** 0.5 ~ ' ' ~ -2 ** 2
2 ** 3 ** 2
9223372036854775807
-9223372036854775807 - 1
10 ** 18
1 / 0
1 // 0
1 % 0
1.5 % 0
'a' * 3 ~ [1] * 2 ~ (1, 2) * 2 ~ 2 * 'b' ~ 'x' * -1
'a' + 1
1 + 'a'
[1] + [2] + l
[1] + (2,)
n + 1
missing + 1
1 + missing
-missing
not missing
missing
missing.attr
missing['x']
missing()
missing ~ 'x'
missing == missing2
missing == none
missing < 1
'a' in missing
missing is defined ~ missing is undefined
d.missing
d.missing.more
d['missing']['more']
l[10]
l[10].x
s.nothing.x
n.x
n.x.y
i.x.y
users[0].name ~ users[-1]['age'] ~ users[0].tags[0]
l.0 ~ l.1
1 == 1.0 ~ (1 == t) ~ ('1' == 1) ~ ([1] == [1.0]) ~ ((1,) == [1])
{'a': 1, 'b': 2} == {'b': 2, 'a': 1}
1 < 2 < 3 ~ (3 > 2 >= 2) ~ (1 < 3 < 2)
'a' < 'b' ~ ('Z' < 'a') ~ ('é' > 'z')
[1, 2] < [1, 3] ~ ([1] < [1, 0]) ~ ((1, 2) >= (1, 2))
1 < 'a'
n < 1
[1] < 'a'
{} < {}
'ell' in s ~ ('x' not in s) ~ (2 in l) ~ ('b' in d) ~ (none in mixed) ~ (1 in (1,))
1 in s
1 in 5
l in [[3, 1, 2]]
t and 0 or 'x'
e or el or 'last'
e and 1
not t or t
not not 1
not 1 == 2
'yes' if t else 'no'
'yes' if f
('yes' if f).x
1 if f else 2 if f else 3
s[0] ~ s[-1] ~ s[2:5] ~ s[::-1] ~ s[::2] ~ s[-3:] ~ s[:-3] ~ s[10:2:-3]
u[1] ~ u[-1] ~ u[::-1] ~ u[1:4] ~ u|length
l[1:] ~ l[::-1] ~ l[:1] ~ l[5:] ~ (1, 2, 3)[::2]
s[::0]
s['a']
s[100] is undefined
d[0:1]
n[0:1]
-3 | abs ~ (-3) | abs ~ -2.5|abs
-i ~ +i ~ - -i ~ -x ~ -t
'a' 'b' "c"
'\n\t\\\'\"\x41\u00e9\U0001F600\101\q' ~ 'end'
"tab\there" ~ 'line\
joined'
(1, 2), 3
1, 2
[1, 2,] ~ {'a': 1,}
range(5) ~ range(1, 4)|list ~ range(5, 0, -2)|list ~ range(0)|list ~ range(0, 7, 3)
range(3)[1] ~ range(3)|length
range(100001)
range(1, 2, 0)
dict(a=1, b='x') ~ dict({'k': 1}, z=2) ~ dict([('a', 1), ['b', 2]])
dict(1)
namespace(a=1).a ~ namespace({'b': 2}).b
namespace().x
namespace(_a=1)
s.upper() ~ s.lower() ~ s.title() ~ s.swapcase() ~ 'hELLO'.capitalize()
u.upper() ~ 'ÀÉÎ'.lower() ~ 'ÀB'.swapcase() ~ "they're here".title()
ws.strip() ~ '|' ~ ws.lstrip() ~ '|' ~ ws.rstrip() ~ '|'
'xxabcxx'.strip('x') ~ 'xyabcyx'.lstrip('xy') ~ 'a\n\n'.rstrip('\n') ~ 'é☃é'.strip('é') ~ '\u3000a\u2003'.strip()
'a'.strip(none) ~ 'a'.strip('')
s.split() ~ csv.split(',') ~ csv.split(',', 1) ~ csv.rsplit(',', 1) ~ ws.split() ~ ''.split() ~ ''.split(',')
' a  b c '.split(none, 1) ~ ' a  b c '.rsplit(none, 1) ~ 'a b'.split(maxsplit=0) ~ ' a b '.rsplit(maxsplit=0)
'a<>b<>c'.split('<>')[-1] ~ 'a<>b<>c'.split('<>', 1)[1] ~ 'a'.split('<>')[0]
s.split('')
s.split(1)
lines.splitlines() ~ lines.splitlines(true) ~ 'a\r\nb\x0bc\x85d'.splitlines()
csv.partition(',') ~ csv.rpartition(',') ~ csv.partition('x') ~ csv.rpartition('x')
s.startswith('He') ~ s.startswith(('x', 'H')) ~ s.endswith('ld') ~ s.startswith('W', 6) ~ s.endswith('o', 0, 5) ~ s.startswith('')
s.startswith(1)
s.find('o') ~ s.rfind('o') ~ s.find('zz') ~ s.find('o', 5) ~ u.find('☃') ~ s.index('W') ~ s.find('', 3) ~ s.find('H', 1, 3)
s.index('zz')
s.count('l') ~ s.count('') ~ 'aaaa'.count('aa') ~ s.count('o', 5)
s.replace('o', '0') ~ s.replace('o', '0', 1) ~ 'abc'.replace('', '-') ~ 'é'.replace('', '.') ~ 'aa'.replace('a', '') ~ ''.replace('', 'x')
', '.join(['a', 'b']) ~ '-'.join('abc') ~ ''.join([]) ~ '+'.join({'a': 1, 'b': 2})
', '.join([1])
'{} {1}'.format(1, 2)
'{} {} {}'.format(1, 'a', none) ~ '{0}{1}{0}'.format('a', 'b') ~ '{a} {b.name} {c[0]}'.format(a=1, b=users[0], c=l) ~ '{{}}'.format()
'{:5}|{:<5}|{:>5}|{:^5}|{:*^7}|{:05d}|{:+d}|{:.2f}|{:x}|{:,}'.format('a', 'b', 'c', 'd', 'e', 42, 7, 3.14159, 255, 1234567)
'{!r} {!s}'.format('a', 'b') ~ '{:.3}'.format('abcdef') ~ '{:e} {:g} {:%}'.format(12345.678, 0.0001, 0.5)
'{}'.format()
'{:d}'.format('a')
'%s is %d years, %.2f %5s|%-5s|%05d %x %% %r' % ('ann', 30, 1.5, 'a', 'b', 42, 255, 'q')
'%s' % 'one' ~ '%(a)s' % {'a': 1} ~ '%s' % [1, 2] ~ '%s' % missing ~ '%i' % 3.7 ~ '%+d' % 5 ~ '%e' % 12.5 ~ '%g' % 1e10
'%s %s' % 'one'
'%s' % (1, 2)
'%d' % 'a'
'a'.ljust(3) ~ 'a'.rjust(3, '.') ~ 'a'.center(4, '*') ~ 'ab'.center(5, '*') ~ '7'.zfill(3) ~ '-7'.zfill(4)
'prefix-x'.removeprefix('prefix-') ~ 'x.txt'.removesuffix('.txt') ~ 'a'.removeprefix('b')
'123'.isdigit() ~ '12a'.isdigit() ~ 'abc'.isalpha() ~ 'é'.isalpha() ~ 'a1'.isalnum() ~ ' '.isspace() ~ ''.isspace() ~ 'A'.isupper() ~ 'a1'.islower()
s.nomethod()
s.upper(1)
d.items() ~ d.keys() ~ d.values()
d.items()|list ~ d.keys()|list ~ d.values()|list
d.get('b') ~ d.get('zz') ~ d.get('zz', 5) ~ d.get('c').get('d')
keys['items'] ~ keys['get'] ~ keys['keys']
keys.items() is iterable
d.pop('a')
d.update({})
l.append(1)
l.append
l.index(1) ~ l.count(3) ~ (1, 2, 1).count(1) ~ l.index(2)
l.index(99)
d.__class__
s.__class__.__mro__
' x '|trim ~ 'xxax'|trim('x') ~ 5|trim ~ n|trim
s|length ~ l|count ~ d|length ~ e|length ~ missing|length
5|length
n|length
s|upper|lower|capitalize ~ 'hello world-foo (bar'|title ~ "it's"|title
s|replace('o', '0') ~ s|replace('l', 'L', 2) ~ 5|replace(5, 6)
s|reverse ~ l|reverse|list ~ (1, 2)|reverse|list
l|first ~ l|last ~ s|first ~ s|last ~ d|first ~ d|last
el|first
el|first|upper ~ el|last
el|first + 1
l|join ~ l|join(', ') ~ users|join(',', attribute='name') ~ s|join('-') ~ [n, t]|join('/') ~ d|join
l|sort ~ l|sort(reverse=true) ~ names|sort ~ names|sort(case_sensitive=true) ~ names|sort(true)
users|sort(attribute='age')|map(attribute='name')|list ~ users|sort(attribute='age,name')|map(attribute='name')|list
users|sort(attribute='age', reverse=true)|map(attribute='name')|join
mixed|sort
names|unique|list ~ names|unique(true)|list ~ users|unique(attribute='age')|map(attribute='name')|list
[1, 1.0, true, 2]|unique|list
d|dictsort ~ {'B': 1, 'a': 2}|dictsort ~ {'B': 1, 'a': 2}|dictsort(true) ~ {'a': 2, 'b': 1}|dictsort(by='value') ~ {'a': 1, 'b': 2}|dictsort(reverse=true)
d|dictsort(by='x')
d|items|list ~ missing|items|list
l|items|list
l|min ~ l|max ~ names|min ~ names|max ~ users|max(attribute='age') ~ el|min
l|sum ~ users|sum(attribute='age') ~ [1.5, 2]|sum ~ el|sum ~ [[1], [2]]|sum(start=[])
['a']|sum
l|list ~ s|list ~ d|list ~ missing|list ~ (1, 2)|list
5|list
l|batch(2)|list ~ l|batch(2, 'x')|list ~ l|slice(2)|list ~ l|slice(2, 'x')|list
users|groupby('age')|length
users|groupby('age') ~ names|groupby(0)|map(attribute=0)|list
users|map(attribute='name')|list ~ users|map(attribute='tags.0', default='-')|list ~ names|map('upper')|list ~ l|map('string')|join
names|map('replace', 'b', 'p')|list ~ l|map('round', 1)|list
l|map('nofilter')|list
l|map|list
l|select('odd')|list ~ l|reject('odd')|list ~ mixed|select|list ~ l|select('gt', 1)|list ~ l|select('in', [1, 2])|list ~ l|select('divisibleby', 2)|list
users|selectattr('tags')|map(attribute='name')|list ~ users|selectattr('age', 'equalto', 30)|list|length ~ users|rejectattr('age', '==', 30)|map(attribute='name')|list ~ users|selectattr('tags', 'defined')|list|length
l|select('notest')|list
users|selectattr|list
l|select('odd')|length
l|select('odd')|first ~ l|map('string')|last
missing|default('x') ~ n|default('x') ~ e|default('x', true) ~ e|d('x') ~ missing|d ~ d.q|default(5) ~ zero|default(1, boolean=true)
'42'|int ~ ' 42 '|int ~ '4.7'|int ~ 'x'|int ~ 'x'|int(5) ~ 3.9|int ~ -3.9|int ~ t|int ~ n|int ~ '0x1f'|int(base=16) ~ '1010'|int(0, 2) ~ '1_000'|int ~ '-5'|int ~ ''|int ~ '12abc'|int
'2.5'|float ~ 'x'|float ~ 'x'|float(1.5) ~ 3|float ~ '1e3'|float ~ n|float ~ inf|float ~ nan|float ~ minf|float ~ ' 7 '|float
missing|int
2.5|round ~ 3.5|round ~ 2.675|round(2) ~ 2.1|round(method='ceil') ~ 2.9|round(0, 'floor') ~ 42|round ~ 1.25|round(1) ~ -2.5|round ~ 1234.5|round(-2)
2.5|round(1, 'bad')
s|string ~ 5|string ~ n|string ~ l|string ~ missing|string ~ 'x'
html|e ~ '|' ~ html|escape ~ '|' ~ html|safe ~ '|' ~ html|forceescape
(html|safe) + '<b>' ~ '|' ~ ('<b>' + html|safe) ~ '|' ~ (html|safe ~ '<b>') ~ [html|e] ~ (html|e|e)
(html|safe).upper() + '<' ~ (('<%s>'|safe) % '<') ~ ('<'|safe).join(['<', '>']) ~ (('a<'|safe).replace('a', '<')) ~ ('<'|safe * 2)
html|safe is string ~ (html|safe == html) ~ (html|safe|length) ~ html|safe|tojson
lines|indent ~ '|' ~ lines|indent(2, true) ~ '|' ~ lines|indent(2, blank=true) ~ '|' ~ lines|indent('> ', first=true) ~ '|' ~ ''|indent
5|indent
'%s-%s'|format('a', 1) ~ '%(a)s'|format(a=2)
'%s'|format(1, a=2)
'a b c'|wordcount ~ 'ab'|center(6) ~ '|'
d|tojson ~ mixed|tojson ~ q|tojson ~ u|tojson ~ u|tojson(ensure_ascii=true) ~ 'a/b<>&\x00\x1f\x7f\n\t'|tojson
d|tojson(indent=2) ~ mixed|tojson(indent=0) ~ [[], {}, [1]]|tojson(indent='--') ~ el|tojson(indent=4)
d|tojson(separators=(',', ':')) ~ d|tojson(sort_keys=true) ~ d|tojson(indent=1, separators=(' ,', ' : '), sort_keys=true)
{1: 2, none: 3, true: 4, 1.5: 5, 'a': (1, 2)}|tojson ~ [1e22, 1e-7, 2.0, nan|float, inf|float]|tojson ~ t|tojson ~ n|tojson ~ 5|tojson
{(1, 2): 3}|tojson
missing|tojson
range(3)|tojson
namespace()|tojson
d|tojson|length ~ d|tojson is string
n is none ~ e is none ~ missing is none ~ (n is not none)
s is string ~ l is string ~ i is number ~ x is number ~ t is number ~ i is integer ~ t is integer ~ x is integer ~ x is float ~ i is float
t is boolean ~ i is boolean ~ t is true ~ 1 is true ~ f is false ~ zero is false ~ n is false
d is mapping ~ l is mapping ~ l is sequence ~ s is sequence ~ d is sequence ~ i is sequence ~ missing is sequence ~ range(2) is sequence
l is iterable ~ s is iterable ~ d is iterable ~ i is iterable ~ n is iterable ~ missing is iterable ~ d.items() is iterable ~ d.items() is sequence
range is callable ~ s is callable ~ s.upper is callable ~ missing is callable
i is odd ~ i is even ~ 4 is even ~ i is divisibleby 7 ~ i is divisibleby(2) ~ x is odd
i is eq 7 ~ i is ne 7 ~ i is lt 8 ~ i is le 7 ~ i is gt 7 ~ i is ge 7 ~ i is equalto(7) ~ i is greaterthan 6 ~ i is lessthan 6
i is in [7] ~ i is not in [7] ~ 'H' is in s ~ 'b' is in d
n is sameas none ~ t is sameas true ~ 1 is sameas true ~ l is sameas l
'abc' is lower ~ 'ABC' is upper ~ 'aBc' is lower ~ '1' is lower ~ 5 is upper
'upper' is filter ~ 'nope' is filter ~ 'odd' is test
s is defined and s is string or missing.x
s is not defined ~ not s is defined ~ (s is defined) ~ (not missing is defined)
l is notatest
l|notafilter
s is string is string
raise_exception('plain message')
raise_exception('with ' ~ i ~ ' é')
strftime_now('%Y-%m-%d %H:%M:%S') ~ strftime_now('%d %b %Y') ~ strftime_now('%A %B %j') ~ strftime_now('') ~ strftime_now('100%%')
strftime_now is defined ~ raise_exception is defined ~ namespace is callable
s()
(1)()
l if l else el
[l|length, d.a[0] + 1, 'x' ~ 1][1:]
{'a': {'b': [1, {'c': 'deep'}]}}.a.b[1].c
{'a': 1}['a'] ~ {'a': 1}.a ~ [1, 2][1] ~ 'abc'[1] ~ (1, 2)[0]
{[1]: 2}
{'a': 1, 'a': 2}
{1: 'i', 1.0: 'f', true: 't'}
[1, 2
{'a' 1}
1 +
a b
'unterminated
a.1b
1 if
foo(a=1, 2)
foo(*l, *l)
range(*[1, 4])|list ~ dict(**{'a': 1}) ~ dict(*[{'a': 1}], **{'b': 2})
s.split(*[' '], **{'maxsplit': 1})
range(**{'x': 1})
'a' is in 'abc' and 'b' not in 'xyz'
- 1 ** 2 ~ 2 * -3 ~ 10 - -3
1 ~ 2 + 3
1 + 2 ~ 3 * 4
'a' ~ 'b' == 'ab'
n == none ~ (none is none) ~ (None == none) ~ True ~ False
"\u00ad\u200b\x7f" ~ ["\u00ad\u200b\x7f\u3000é\U0001F600\ue000"]
['\r\n\t\x00\x1b\\']
huge
huge ~ ' ' ~ schema
schema | tojson
huge is integer ~ huge is number ~ huge is string ~ huge is boolean
huge == 18446744073709551615.0
huge > 5 ~ (5 > huge) ~ (huge == huge) ~ (huge < 1e30)
[huge, 1] | sort
huge | string | length
huge | int
huge | float
huge | abs
{huge: 1}[huge]
'%s' % huge
not huge
d[[1]]
d[[1]] is defined
d[{}]
d[[1]].x
{(1, 2): 'x'}[(1, 2)]
german | upper
german.upper() ~ german.title() ~ german.capitalize() ~ german.casefold() ~ german.swapcase()
german | title
greek | lower
greek.lower() ~ greek.title() ~ greek.capitalize() ~ greek.casefold()
'Σ'.lower() ~ 'ΑΣ.'.lower() ~ 'ΑΣ:Β'.lower() ~ 'Α.Σ'.lower()
'ǆ'.title() ~ 'ǆ'.upper() ~ 'ǆ abc ǆx' | title
'ﬁsh'.upper() ~ 'ﬁsh'.title() ~ 'ﬁsh' | capitalize
'İstanbul'.lower() | length
'ŉ'.upper() ~ 'ᾳ'.upper() ~ 'ᾳ'.title()
'²'.isdigit() ~ '²'.isdecimal() ~ '²'.isnumeric() ~ '½'.isdigit() ~ '½'.isnumeric() ~ '五'.isnumeric() ~ '٣'.isdecimal()
'a²'.isalnum() ~ 'a½'.isalnum()
'abc'.isascii() ~ 'é'.isascii() ~ ''.isascii()
'a b'.isprintable() ~ 'a\nb'.isprintable() ~ ''.isprintable()
'abc1'.isidentifier() ~ '1abc'.isidentifier() ~ ''.isidentifier() ~ '_é'.isidentifier() ~ 'a b'.isidentifier()
'Hello World'.istitle() ~ 'Hello world'.istitle() ~ 'HELLO'.istitle() ~ ''.istitle() ~ "It'S 1A".istitle()
tabs.expandtabs() ~ '|' ~ tabs.expandtabs(4) ~ '|' ~ tabs.expandtabs(0) ~ '|' ~ 'ab\n\tc'.expandtabs(3)
s | truncate(5)
s | truncate(5, true, '...', 0)
s | truncate(8, false, '...', 0)
s | truncate(9, leeway=0)
prose | truncate(20)
prose | truncate(20, true)
prose | truncate(20, end='')
u | truncate(8, true, '…', 0)
s | truncate(2)
'foo bar baz qux' | truncate(9) ~ ('foo bar baz qux' | truncate(11)) ~ ('foo bar baz qux' | truncate(11, False, '...', 0))
prose | wordwrap(20)
prose | wordwrap(10)
prose | wordwrap(10, false)
prose | wordwrap(30, wrapstring='|')
'abcdefghij klm' | wordwrap(4)
'abcdefghij klm' | wordwrap(4, false)
'one  two   three' | wordwrap(5)
lines | wordwrap(3)
'' | wordwrap(10)
'x' | wordwrap(0)
100 | filesizeformat ~ '|' ~ (1 | filesizeformat) ~ '|' ~ (999 | filesizeformat) ~ '|' ~ (1000 | filesizeformat)
1000000 | filesizeformat ~ '|' ~ (1000000000 | filesizeformat) ~ '|' ~ (1000000000000 | filesizeformat) ~ '|' ~ (1e30 | filesizeformat)
1000 | filesizeformat(true) ~ '|' ~ (1024 | filesizeformat(true)) ~ '|' ~ (1048576 | filesizeformat(binary=true)) ~ '|' ~ (0 | filesizeformat)
html | striptags
tags | striptags
'a < b > c' | striptags
'no tags   at all' | striptags
s | urlencode ~ '|' ~ (u | urlencode) ~ '|' ~ ('a/b?c=d&e' | urlencode) ~ '|' ~ (7 | urlencode)
{'a b': 'c/d', 'é': 1} | urlencode
[('a', 1), ('b', 'x y')] | urlencode
{'class': 'a', 'id': 1, 'none': none, 'q': '<"&>'} | xmlattr
{'class': 'a'} | xmlattr(false)
{} | xmlattr
{'a b': 1} | xmlattr
{'a': missing} | xmlattr
cycler('a', 'b').next()
cycler()
joiner()() ~ joiner('|')()
cycler('a', 'b').current
d | pprint
users | pprint
mixed | pprint ~ (() | pprint) ~ ((1,) | pprint) ~ (ed | pprint) ~ (el | pprint) ~ (s | pprint) ~ (missing | pprint)
prose | pprint
[prose, prose] | pprint
{'text': prose, 'a': [prose * 2, users, (prose,)]} | pprint
('word ' * 40) | pprint
'x' * 100 | pprint
('x' * 100) | pprint
[u * 9, ws * 12, q * 12] | pprint
lines * 9 | pprint
(lines * 9) | pprint
range(40) | list | pprint
(1,) * 30 | pprint
((1,) * 30) | pprint
{'b': users, 'a': {'z': l * 12, 'y': names * 6}} | pprint
{1: 'x', 'a': 'y'} | pprint
links | urlize
links | urlize(12)
links | urlize(12, true)
links | urlize(nofollow=true, target='_blank', rel='me  other')
links | urlize(rel='a"b', target='<x>')
links | urlize(extra_schemes=['ftp:', 'tel:'])
links | urlize(extra_schemes=['!'])
html | urlize ~ (7 | urlize) ~ (e | urlize) ~ (n | urlize)
missing | urlize
googol ~ ' ' ~ minus_googol ~ ' ' ~ [googol] ~ ' ' ~ {'k': minus_googol}
googol | tojson ~ ' ' ~ ({'maximum': googol} | tojson) ~ ' ' ~ (googol | string | length)
-googol ~ ' ' ~ (minus_googol | abs) ~ ' ' ~ (googol | int) ~ ' ' ~ (googol | float)
googol > huge ~ ' ' ~ (minus_googol < -1) ~ ' ' ~ (googol > 1e99) ~ ' ' ~ (googol < 1e101) ~ ' ' ~ (huge > 9223372036854775807)
googol == 10.0 ** 100 ~ ' ' ~ (googol == googol) ~ ' ' ~ (two_to_70 == 2.0 ** 70) ~ ' ' ~ (two_to_70 == 1180591620717411303424) ~ ' ' ~ (googol == 1)
[googol, 1, minus_googol, 2.5, huge] | sort
googol is integer ~ ' ' ~ (googol is number) ~ ' ' ~ (googol is float)
18446744073709551616 ~ ' ' ~ -9223372036854775808 ~ ' ' ~ 99999999999999999999999
'123456789012345678901234567890' | int ~ ' ' ~ ('-1_000_000_000_000_000_000_000' | int) ~ ' ' ~ (1e22 | int) ~ ' ' ~ (-1e30 | int)
'%d' % googol ~ ' ' ~ '%s' % minus_googol ~ ' ' ~ '%.3e' % googol ~ ' ' ~ '%d' % 1e22
'{:,}'.format(googol) ~ ' ' ~ '{:>110}'.format(minus_googol) ~ ' ' ~ '{:d}'.format(two_to_70)
huge | filesizeformat ~ ' ' ~ (two_to_70 | filesizeformat(true)) ~ ' ' ~ (googol | filesizeformat)
{googol: 1}[googol] ~ ' ' ~ ({two_to_70: 'two'}[2.0 ** 70])
"""


def cases():
    for line in EXPRESSIONS.strip("\n").replace("\\\njoined", "\\\0joined").split("\n"):
        yield "{{ " + line.replace("\0", "\n") + " }}", VARIABLES

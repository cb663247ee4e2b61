"""Statements, scoping and whitespace control, each with several contexts."""

CONTEXTS = [
    {"xs": [1, 2, 3], "flag": True, "name": "ann", "tree": [{"v": 1, "kids": [{"v": 2, "kids": []}]}, {"v": 3, "kids": []}],
     "pairs": [["a", 1], ["b", 2]], "d": {"k": "v", "w": 2}},
    {"xs": [], "flag": False, "name": "", "tree": [], "pairs": [], "d": {}},
]

# Separated by lines of ====; newlines inside are significant.
TEMPLATES = r"""
{% if flag %}yes{% elif xs %}some{% else %}no{% endif %}
====
{% if xs %}
  {{ xs[0] }}
{% endif %}
after
====
  {% if flag %}
    indented
  {% endif %}
tail
====
a {%- if flag %} b {%- endif %} c
====
a
  {%- if flag -%}
  b
  {%- endif -%}
  c
====
a
  {%+ if flag %}
  b
  {% endif +%}
c
====
{{ name }}
next
====
{{ name -}}

  next {{- name }} x
====
{#- comment -#}
  text {# inline #} more
{# whole line #}
end
====
  {# indented #}
x {#+ keep #}
 y {#- a -#} z
  {#+ kept +#}
w
====
{% raw %}{{ not }} {% parsed %} {# here #}{% endraw %}
x
====
  {%- raw -%}
  {{ a }}
  {%- endraw -%}
  b
====
  {% raw %}
  {{ a }}
  {% endraw %}
b
====
{% for x in xs %}{{ x }}{% if not loop.last %}, {% endif %}{% else %}empty{% endfor %}
====
{% for x in xs %}
- {{ loop.index }}/{{ loop.length }} {{ loop.index0 }} {{ loop.revindex }} {{ loop.revindex0 }} {{ loop.first }} {{ loop.last }} {{ loop.previtem }} {{ loop.nextitem }} {{ loop.depth }} {{ loop.cycle('odd', 'even') }}
{% endfor %}
====
{% for x in [1, 1, 2, 2, 3] %}{{ x if loop.changed(x) }}|{% endfor %}
====
{% for x in xs if x != 2 %}{{ loop.index }}:{{ x }}/{{ loop.length }} {% else %}none{% endfor %}
====
{% for a, b in pairs %}{{ a }}={{ b }};{% endfor %}
====
{% for (a, b) in pairs %}{{ a }}{% endfor %}{% for k, v in d.items() %}{{ k }}:{{ v }},{% endfor %}{% for k in d %}{{ k }}{% endfor %}
====
{% for k, v in d|items %}{{ loop.index }}{{ k }}{{ v }}{% endfor %}
====
{% for a, b, c in [[1, 2]] %}{{ a }}{% endfor %}
====
{% for a, b in [1] %}{{ a }}{% endfor %}
====
{% for x in 5 %}{{ x }}{% endfor %}
====
{% for x in none %}{{ x }}{% endfor %}
====
{% for x in missing %}{{ x }}{% else %}nothing{% endfor %}
====
{% for c in 'aé☃' %}[{{ c }}]{% endfor %}
====
{% for x in xs recursive %}{{ x }}{% endfor %}
====
{% for n in tree recursive %}{{ loop.depth }}.{{ n.v }}({{ loop(n.kids) if n.kids }}){% endfor %}
====
{% for x in xs %}{{ loop(xs) }}{% endfor %}
====
{% for x in xs %}{% for y in xs %}{{ x }}{{ y }}{{ loop.index }} {% endfor %}{{ loop.index }};{% endfor %}
====
{% for x in xs %}{% set outer = loop %}{% for y in xs %}{{ outer.index }}{{ loop.index }} {% endfor %}{% endfor %}
====
{% for x in range(10) %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 5 %}{% break %}{% endif %}{{ x }}{% endfor %}
====
{% for x in range(4) %}{% for y in range(4) %}{% if y > x %}{% break %}{% endif %}{{ y }}{% endfor %};{% endfor %}
====
{% break %}
====
{% for x in xs %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}
====
{% set a = 1 %}{% if flag %}{% set a = 2 %}{% set b = 3 %}{% endif %}{{ a }}{{ b }}
====
{% set a = 1 %}{% for x in xs %}{{ a }}{% set a = a + x %}{{ a }} {% endfor %}{{ a }}
====
{% set ns = namespace(n=0, found=false) %}{% for x in xs %}{% set ns.n = ns.n + x %}{% if x == 2 %}{% set ns.found = true %}{% endif %}{% endfor %}{{ ns.n }} {{ ns.found }} {{ ns.missing }}
====
{% set ns = namespace() %}{% set ns.a = 1 %}{% set ns.b = [ns.a, 2] %}{{ ns.b }} {{ ns.a }} {{ ns['a'] }}
====
{% set d.x = 1 %}
====
{% set missing.x = 1 %}
====
{% set ns = namespace() %}{% set ns._x = 1 %}
====
{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set (c, e) = [3, 4] %}{{ c }}{{ e }}{% set t = 1, 2 %}{{ t }}
====
{% set a, b = [1] %}
====
{% set ns = namespace(x=0) %}{% set ns.x, b = 1, 2 %}{{ ns.x }}{{ b }}
====
{% set text %}  block {{ name }} {% set inner = 1 %}{% endset %}[{{ text }}]{{ inner }}
====
{% set text | upper | trim %}  block {{ name }}  {% endset %}[{{ text }}]
====
{% set ns = namespace(t='') %}{% set ns.t %}x{{ name }}{% endset %}{{ ns.t }}{{ ns.t|length }}
====
{% macro m(a, b='def', c=a) %}{{ a }}-{{ b }}-{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, 2) }} {{ m(b=3, a=4) }} {{ m() }} {{ m(1, c=9) }}
====
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}
====
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(z=2) }}
====
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, a=2) }}
====
{% macro m(a) %}{{ a.x.y }}{% endmacro %}{{ m() }}
====
{% macro m(a) %}{{ a.x }}{% endmacro %}{{ m() }}
====
{% macro m() %}{{ varargs }} {{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }} {{ m() }}
====
{% macro m(a) %}{{ a }}{{ varargs }}{% endmacro %}{{ m(1, 2, 3) }}
====
{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}body {{ name }}{% endcall %}
====
{% macro m(xs) %}{% for x in xs %}{{ caller(x, loop.index) }};{% endfor %}{% endmacro %}{% call(v, i=0) m(xs) %}{{ i }}={{ v }}{% endcall %}
====
{% macro m() %}{{ caller is defined }}{% if caller %}{{ caller() }}{% endif %}{% endmacro %}{{ m() }}{% call m() %}c{% endcall %}
====
{% macro m() %}x{% endmacro %}{% call m() %}c{% endcall %}
====
{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}
====
{% macro outer() %}{% macro inner() %}in{{ name }}{% endmacro %}[{{ inner() }}]{% endmacro %}{{ outer() }}{{ inner is defined }}
====
{% macro fact(n) %}{{ n * (fact(n - 1)|int) if n > 1 else 1 }}{% endmacro %}{{ fact(10) }}
====
{% macro m() %}{{ late }}{% endmacro %}{% set late = 'set' %}{{ m() }}
====
{% set g = 1 %}{% macro m() %}{{ g }}{% set g = 2 %}{{ g }}{% endmacro %}{{ m() }}{{ g }}{% set g = 5 %}{{ m() }}
====
{% macro m(ns) %}{% set ns.n = ns.n + 1 %}{{ ns.n }}{% endmacro %}{% set ns = namespace(n=0) %}{{ m(ns) }}{{ m(ns) }}{{ ns.n }}
====
{% set ns = namespace(c=0) %}{%- macro count(x, by=1) -%}{%- set ns.c = ns.c + by -%}  {{ x }}  {%- endmacro -%}{{ count('a')|trim }}{{ count('b', by=2)|trim }}{{ ns.c }}
====
{% macro m(x) %}{{ x }}{% endmacro %}{{ m }} {{ m.name }} {{ m.arguments }} {{ m is callable }} {{ m('<')|length }} {{ m('a') ~ m('b') + 'c' }}
====
{% macro m() %}
  line
{% endmacro %}
[{{ m() }}]
====
{% for x in xs %}{% macro m() %}{{ x }}{% endmacro %}{{ m() }}{% endfor %}
====
{% filter upper %}abc {{ name }}{% set z = 1 %}{% endfilter %}{{ z }}
====
{% filter replace('a', 'b') | trim %}  aaa {% endfilter %}|
====
{% with a = 1, b = name %}{{ a }}{{ b }}{% set c = 2 %}{% endwith %}{{ a }}{{ c }}
====
{% set a = 1 %}{% with a = 2, b = a %}{{ a }}{{ b }}{% endwith %}{{ a }}
====
{% generation %}gen {{ name }}{% set q = 1 %}{% endgeneration %}{{ q }}|
====
{% for x in xs %}{% generation %}
{{ x }}{{ loop.index }}
{% endgeneration %}
{% endfor %}
====
{%- if flag %}{{- raise_exception('flag is set for ' + name) }}{%- endif %}ok
====
{% if flag %}{{ missing.attr }}{% endif %}fine
====
{% unknown %}
====
{% if flag %}unclosed
====
{% endif %}
====
{% for x in xs %}{{ x }}
====
{{ name
====
{{ name }
====
{% if flag %}{% endfor %}
====
{# never closed
====
{% raw %} never closed
====
{% set %}
====
{% set 1 = 2 %}
====
{% set true = 2 %}
====
{% macro m(a, b=1, c) %}{% endmacro %}
====
{% for x of xs %}{% endfor %}
====
{{ }}
====
{% %}
====
{{ 1 }}{{ '}}' }}{{ "{%" }}{{ {'a': {'b': 1}}['a']['b'] }}{{ {}}}
====
{%if flag%}tight{%endif%}{{name}}{{-name-}}
====
{% if flag: %}colon{% endif %}
====
{%
  set
  spread = [
    1,
    2,
  ]
%}
{{
  spread
    | join(
      ', '
    )
}}
====
	{% if true %}	tab
	{% endif %}
 	mix
====


{% if true %}


two blank lines


{% endif %}


====
{% set x = 1 %}
{% set y = 2 %}

{{ x }}{{ y }}
{%- set z = 3 %}

{{ z }}
====
x{% if true %}

y{% endif %} 
 z
====
{{ '\n' }}{% if true %}
{{ 'a\n' }}
{% endif %}
b
====
  {{ 'x' }}  
  {{- 'y' -}}  
  z
====
line1{% if true %}
line2
{% endif %}line3
    {% if true %}line4{% endif %}
====
{% set row = cycler('odd', 'even') %}{% for x in xs %}{{ row.next() }}{{ row.current }}{% endfor %}{{ row.reset() }}{{ row.next() }}
====
{% set comma = joiner() %}{% set bar = joiner('|') %}{% for x in xs %}{{ comma() }}{{ x }}{{ bar() }}{% endfor %}

"""


def cases():
    for template in TEMPLATES[1:].split("\n====\n"):
        for context in CONTEXTS:
            yield template, context
    for newline in ("\r\n", "\r"):
        yield "a\n{% if true %}\n  b\n{% endif %}\nc 'x\ny'\n".replace("\n", newline), {}
    for text in ("", "\n", "\n\n", "{", "{ {", "}}", "%}", "{{'a'}}\n", "a\n", "a\n\n", "\ufeffx", "#}", "{%- if true -%}\n"):
        yield text, {}

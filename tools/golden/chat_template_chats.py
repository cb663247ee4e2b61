"""Complete chat templates in the style of supported models, over complete conversations."""

# ChatML with reasoning, tools as XML-like calls, and a macro that flattens content parts.
REASONING = r"""
{%- set media = namespace(images=0) %}
{%- macro flat(content, count_images, in_system=false) %}
    {%- if content is string %}
        {{- content }}
    {%- elif content is iterable and content is not mapping %}
        {%- for part in content %}
            {%- if 'image' in part or part.type == 'image' %}
                {%- if in_system %}{{- raise_exception('No images in the system message.') }}{%- endif %}
                {%- if count_images %}{%- set media.images = media.images + 1 %}{%- endif %}
                {%- if numbered %}{{- 'Image ' ~ media.images ~ ': ' }}{%- endif %}
                {{- '<|image|>' }}
            {%- elif 'text' in part %}
                {{- part.text }}
            {%- else %}
                {{- raise_exception('Unknown content part.') }}
            {%- endif %}
        {%- endfor %}
    {%- elif content is none or content is undefined %}
        {{- '' }}
    {%- else %}
        {{- raise_exception('Unknown content type.') }}
    {%- endif %}
{%- endmacro %}
{%- if not messages %}
    {{- raise_exception('There are no messages.') }}
{%- endif %}
{%- if tools and tools is iterable and tools is not mapping %}
    {{- '<|start|>system\n# Tools\n<tools>' }}
    {%- for tool in tools %}
        {{- '\n' ~ (tool | tojson) }}
    {%- endfor %}
    {{- '\n</tools>' }}
    {%- if messages[0].role == 'system' %}
        {%- set text = flat(messages[0].content, false, true)|trim %}
        {%- if text %}{{- '\n\n' + text }}{%- endif %}
    {%- endif %}
    {{- '<|end|>\n' }}
{%- elif messages[0].role == 'system' %}
    {{- '<|start|>system\n' + flat(messages[0].content, false, true)|trim + '<|end|>\n' }}
{%- endif %}
{%- set ns = namespace(searching=true, last=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.searching and message.role == 'user' %}
        {%- set text = flat(message.content, false)|trim %}
        {%- if not (text.startswith('<result>') and text.endswith('</result>')) %}
            {%- set ns.searching = false %}
            {%- set ns.last = index %}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if ns.searching %}{{- raise_exception('No user query found in messages.') }}{%- endif %}
{%- for message in messages %}
    {%- set text = flat(message.content, true)|trim %}
    {%- if message.role == 'system' %}
        {%- if not loop.first %}{{- raise_exception('The system message must come first.') }}{%- endif %}
    {%- elif message.role == 'user' %}
        {{- '<|start|>' + message.role + '\n' + text + '<|end|>' + '\n' }}
    {%- elif message.role == 'assistant' %}
        {%- set thought = '' %}
        {%- if message.reasoning_content is string %}
            {%- set thought = message.reasoning_content %}
        {%- elif '</think>' in text %}
            {%- set thought = text.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') %}
            {%- set text = text.split('</think>')[-1].lstrip('\n') %}
        {%- endif %}
        {%- set thought = thought|trim %}
        {%- if loop.index0 > ns.last %}
            {{- '<|start|>assistant\n<think>\n' + thought + '\n</think>\n\n' + text }}
        {%- else %}
            {{- '<|start|>assistant\n' + text }}
        {%- endif %}
        {%- if message.tool_calls and message.tool_calls is iterable and message.tool_calls is not mapping %}
            {%- for call in message.tool_calls %}
                {%- if call.function is defined %}{%- set call = call.function %}{%- endif %}
                {{- ('\n\n' if text|trim else '') if loop.first else '\n' }}
                {{- '<call>\n<function=' + call.name + '>\n' }}
                {%- if call.arguments is defined %}
                    {%- for name, value in call.arguments|items %}
                        {%- set value = value | tojson | safe if value is mapping or (value is sequence and value is not string) else value | string %}
                        {{- '<parameter=' + name + '>\n' }}
                        {{- value }}
                        {{- '\n</parameter>\n' }}
                    {%- endfor %}
                {%- endif %}
                {{- '</function>\n</call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|end|>\n' }}
    {%- elif message.role == 'tool' %}
        {%- if loop.previtem and loop.previtem.role != 'tool' %}{{- '<|start|>user' }}{%- endif %}
        {{- '\n<result>\n' + text + '\n</result>' }}
        {%- if not loop.last and loop.nextitem.role != 'tool' %}
            {{- '<|end|>\n' }}
        {%- elif loop.last %}
            {{- '<|end|>\n' }}
        {%- endif %}
    {%- else %}
        {{- raise_exception('Unexpected message role: ' ~ message.role) }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start|>assistant\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\n\n</think>\n\n' }}
    {%- else %}
        {{- '<think>\n' }}
    {%- endif %}
{%- endif %}
"""

# No newlines, subscripts instead of attributes, tool calls in fenced JSON, flags in a namespace.
FENCED = r"""{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}{% set ns = namespace(is_first=false, is_tool=false, in_output=false, system='') %}{%- for message in messages %}{%- if message['role'] == 'system' %}{%- if ns.system == '' %}{% set ns.system = ns.system + message['content'] %}{% else %}{% set ns.system = ns.system + '\n\n' + message['content'] %}{% endif %}{%- endif %}{%- endfor %}{{ bos_token }}{{ ns.system }}{%- for message in messages %}{%- if message['role'] == 'user' %}{%- set ns.is_tool = false -%}{{ '<｜U｜>' + message['content'] }}{%- endif %}{%- if message['role'] == 'assistant' and message['tool_calls'] is defined and message['tool_calls'] is not none %}{%- set ns.is_tool = false -%}{%- for tool in message['tool_calls'] %}{%- if not ns.is_first %}{%- if message['content'] is none %}{{ '<｜A｜><｜calls｜>' + tool['type'] + '<｜sep｜>' + tool['function']['name'] + '\n```json\n' + (tool['function']['arguments']|tojson) + '\n```<｜/call｜>' }}{%- else %}{{ '<｜A｜>' + message['content'] + '<｜calls｜>' + tool['function']['name'] }}{%- endif %}{%- set ns.is_first = true -%}{%- else %}{{ '\n' + tool['function']['name'] }}{%- endif %}{%- endfor %}{{ '<｜/calls｜>' + eos_token }}{%- endif %}{%- if message['role'] == 'assistant' and (message['tool_calls'] is not defined or message['tool_calls'] is none) %}{%- if ns.is_tool %}{{ '<｜/outs｜>' + message['content'] + eos_token }}{%- set ns.is_tool = false -%}{%- else %}{% set content = message['content'] %}{% if '</think>' in content %}{% set content = content.split('</think>', 1)[1] %}{% endif %}{{ '<｜A｜>' + content + eos_token }}{%- endif %}{%- endif %}{%- if message['role'] == 'tool' %}{%- set ns.is_tool = true -%}{%- if not ns.in_output %}{{ '<｜outs｜>' + message['content'] }}{%- set ns.in_output = true %}{%- else %}{{ '\n' + message['content'] }}{%- endif %}{%- endif %}{%- endfor -%}{% if ns.is_tool %}{{ '<｜/outs｜>' }}{% endif %}{% if add_generation_prompt and not ns.is_tool %}{{ '<｜A｜>' }}{% if thinking %}{{ '<think>\n' }}{% endif %}{% endif %}"""

# Plain turns that must alternate, a date, and generation blocks.
TURNS = r"""{{ bos_token }}{% if messages and messages[0]['role'] == 'system' %}{% set rest = messages[1:] %}{% set system = messages[0]['content'] %}{% else %}{% set rest = messages %}{% set system = false %}{% endif %}
{% for message in rest %}
  {% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
    {{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}
  {% endif %}
  {% if loop.index0 == 0 and system %}
    {% set content = '<<SYS>>\n' + (system if system is string else system|map(attribute='text')|join) + '\n<</SYS>>\n\n' + message['content']|string %}
  {% else %}
    {% set content = message['content']|string %}
  {% endif %}
  {% if message.role == 'user' %}
[INST] {{ content.strip() }} [/INST]
  {%- else %}
{% generation %} {{ content | trim }} {{ eos_token }}{% endgeneration %}
  {%- endif %}
{% endfor %}
Today is {{ strftime_now('%d %b %Y') if date_string is not defined else date_string }}.
{% if tools is not none and tools %}{{ tools | tojson(indent=4) }}{% endif %}
{{ messages | selectattr('role', 'equalto', 'user') | list | length }} user turns, last role {{ (messages | last).role }}
"""

TOOL = {"type": "function", "function": {"name": "get_weather", "description": "It's \"now\" <é>", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1}}, "required": ["city"]}}}
CALL = {"type": "function", "id": "c1", "function": {"name": "get_weather", "arguments": {
    "city": "Zürich", "days": 3, "exact": True, "near": None, "at": [1.5, "x"], "opts": {"unit": "°C", "n": [1]}}}}


def say(role, content, **more):
    return {"role": role, "content": content, **more}


CONVERSATIONS = [
    [say("user", "Hello!")],
    [say("system", "  Be brief.\n"), say("user", " Hi \n")],
    [say("user", "a"), say("assistant", "b"), say("user", "c")],
    [say("user", "a"), say("assistant", "<think>\nhm\n</think>\n\nb"), say("user", "c"), say("assistant", "d")],
    [say("user", "a"), say("assistant", "b", reasoning_content="why"), say("user", "c"), say("assistant", "d", reasoning_content=" so ")],
    [say("user", "weather?"), say("assistant", "", tool_calls=[CALL]), say("tool", "sunny"), say("assistant", "It is sunny.")],
    [say("user", "weather?"), say("assistant", None, tool_calls=[CALL, CALL]), say("tool", "sunny"), say("tool", "rain")],
    [say("user", "x"), say("assistant", "text", tool_calls=[CALL["function"]]), say("tool", "r"), say("user", "thanks"), say("assistant", "ok")],
    [say("system", [{"type": "text", "text": "sys"}]), say("user", [{"type": "text", "text": "see "}, {"type": "image"}, {"image": "u"}, {"type": "text", "text": "?"}])],
    [say("system", [{"type": "image"}]), say("user", "x")],
    [say("user", [{"type": "audio"}])],
    [say("user", 5)],
    [say("user", "a"), say("system", "late")],
    [say("assistant", "only me")],
    [say("user", "<result>x</result>")],
    [say("narrator", "once"), say("user", "u")],
    [say("user", "a"), say("user", "b")],
    [say("system", "s1"), say("system", "s2"), say("user", "日本語 🎉 \u200b text"), say("assistant", "é")],
    [],
]

OPTIONS = [
    {"tools": None, "add_generation_prompt": True},
    {"tools": [TOOL, TOOL], "add_generation_prompt": True, "enable_thinking": False, "numbered": True, "date_string": "1 Jan"},
    {"tools": None, "add_generation_prompt": False, "enable_thinking": True, "thinking": True},
]


def cases():
    for template in (REASONING, FENCED, TURNS):
        for messages in CONVERSATIONS:
            for options in OPTIONS:
                yield template, {"messages": messages, "bos_token": "<s>", "eos_token": "</s>", **options}

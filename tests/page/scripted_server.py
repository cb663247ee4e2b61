"""A server with the protocol of `sluice serve`, whose answers are selected by the first word of the last message."""

import http.server
import json
import threading
import time

HOSTILE = """<script>window.hacked = 1</script><img src=x onerror="window.hacked = 2">
<iframe src="javascript:parent.hacked=3"></iframe> [click](javascript:window.hacked=4) ![x](http://tracker.invalid/p.png)
[quoted](https://example.org/"onmouseover="window.hacked=5) <b onclick=window.hacked=6>bold</b> `<i>code</i>`

| <svg onload=window.hacked=7> | b |
|---|---|
| [c](data:text/html,<script>window.hacked=8</script>) | &lt;d&gt; |

```html"><script>window.hacked=9</script>
<script>window.hacked = 10</script>
```
"""
MARKDOWN = """# Heading one

Some **bold**, *italic*, `code` and a [link](https://example.org/a_(b)), also https://example.org/plain.

1. first
2. second
   - inner *item*
   - [x] done

> quoted

| Name | Size |
|:-----|-----:|
| delta | 12 |

```python
def f(x):
    return x * 2
```
snake_case_name stays, 2 * 3 * 4 too. ![A picture](https://example.org/p.png)
"""


def words(text):
    """The text in pieces, like tokens."""
    pieces = text.split(" ")
    return [piece + " " for piece in pieces[:-1]] + pieces[-1:]


def deltas(asked):
    """(pause, content of the next chunk) for each step of a script."""
    last = asked["messages"][-1]
    if last["role"] == "assistant":
        return [(0, {"content": piece}) for piece in words(" and this goes on.")]
    if last["role"] == "tool":
        return [(0, {"content": f"The tool said {last['content']}."})]
    name = last["content"].split()[0]
    if name == "slow":
        return [(0.03, {"content": f"w{n} "}) for n in range(400)]
    if name == "think":
        return [(0, {"reasoning_content": piece}) for piece in words("Let me see. It is four.")] + [(0, {"content": "Four."})]
    if name == "call":
        return [(0, {"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "weather", "arguments": ""}}]}),
                (0, {"tool_calls": [{"index": 0, "function": {"arguments": '{"city": '}}]}),
                (0, {"tool_calls": [{"index": 0, "function": {"arguments": '"<b>Bern</b>"}'}}]})]
    if name == "calls":
        return [(0, {"tool_calls": [{"index": n, "id": f"c{n}", "type": "function", "function": {"name": tool, "arguments": "{}"}}]})
                for n, tool in enumerate(("weather", "time"))]
    text = {"hostile": HOSTILE, "markdown": MARKDOWN}.get(name, f"You said: {last['content']}")
    return [(0, {"content": piece}) for piece in words(text)]


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def reply(self, status, body, kind="application/json", headers=()):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in [("Content-Type", kind), ("Content-Length", str(len(data))), *headers]:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def refused(self):
        key = self.server.key
        if key and self.headers.get("Authorization") != f"Bearer {key}":
            self.reply(401, {"error": {"message": "wrong key", "type": "invalid_request_error"}})
            return True
        return False

    def do_GET(self):
        if self.path == "/":
            return self.reply(200, self.server.page, "text/html; charset=utf-8", [("Content-Security-Policy", self.server.policy)])
        if self.refused():
            return None
        if self.path == "/v1/models":
            return self.reply(200, {"object": "list", "data": [{"id": "scripted", "object": "model"}]})
        if self.path == "/v1/sluice/cache?tree":
            return self.reply(200, {"nodes": self.server.nodes})
        if self.path == "/v1/sluice/state":
            return self.reply(200, {"context": 4096, "data": self.server.keeps})
        return self.conversations()

    def conversations(self):
        name, kept = self.path.removeprefix("/v1/sluice/conversations").lstrip("/"), self.server.kept
        if not self.path.startswith("/v1/sluice/conversations") or (name and name not in kept and self.command != "PUT"):
            return self.reply(404, {"error": {"message": "nothing there"}})
        if self.command == "PUT":
            kept[name] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.command == "DELETE":
            del kept[name]
        if not name:
            return self.reply(200, {"data": [{key: one[key] for key in ("id", "title", "updated")} for one in kept.values()]})
        return self.reply(200, kept.get(name, {}))

    do_PUT = do_DELETE = conversations

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.refused():
            return
        self.server.asked.append(asked)
        name = str(asked["messages"][-1]["content"]).split()[0] if asked["messages"][-1]["role"] == "user" else ""
        if name == "refuse":
            return self.reply(400, {"error": {"message": "This context is too long.", "code": "context_length_exceeded"}})
        if name == "busy":
            return self.reply(429, {"error": {"message": "The queue is full."}}, headers=[("Retry-After", "7")])
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        try:
            self.stream(asked, name)
        except OSError:  # the page was closed
            self.server.gone.set()

    def stream(self, asked, name):
        if name == "long":
            for read in range(0, 2049, 256):
                self.line(f": prefill {read}/2048")
                time.sleep(0.05)
        sent = 0
        for pause, delta in deltas(asked):
            time.sleep(pause)
            self.chunk({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
            sent += 1
            if name == "break" and sent == 2:
                return
            if name == "fail" and sent == 2:
                return self.line('data: {"error": {"message": "The device was lost.", "type": "server_error"}}')
        finish = "tool_calls" if name in ("call", "calls") else "length" if name == "cut" else "stop"
        self.chunk({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
        self.chunk({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": sent, "total_tokens": 100 + sent,
                                             "prompt_tokens_details": {"cached_tokens": 64}}})
        self.line("data: [DONE]")

    def chunk(self, fields):
        self.line("data: " + json.dumps({"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "scripted", **fields}))

    def line(self, text):
        self.wfile.write(text.encode() + b"\n\n")
        self.wfile.flush()


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, page, policy, port=0):
        super().__init__(("127.0.0.1", port), Handler)
        self.page, self.policy = page, policy
        self.key, self.keeps, self.kept, self.asked, self.gone = "", False, {}, [], threading.Event()
        self.nodes = []  # of cached prompts
        self.thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def url(self):
        return f"http://127.0.0.1:{self.server_port}/"

    def stop(self):
        self.shutdown()
        self.server_close()
        self.thread.join()

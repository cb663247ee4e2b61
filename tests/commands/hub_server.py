"""A model hub on this machine: implements the part of Hugging Face's protocol that downloads need, and misbehaves on request.
Large files are on a second server, as on the real hub."""

import hashlib
import http.server
import json
import threading
import urllib.parse

COMMIT = "5f0b3b1c0c9d6e6a2f7d3a1e8b4c9d0e1f2a3b4c"


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        """Ignores connections that killed clients close."""


class Hub:
    """`files` by name; names that end in .safetensors are large files, identified by their SHA-256."""

    def __init__(self, repository, files):
        self.repository, self.files = repository, files
        self.requests = []  # (path, first byte, token)
        self.cuts = []  # bytes after which the next answers with a large file are cut off
        self.sent = 0
        self.ranges = True
        self.damage = False
        self.token = None
        self.pause = None  # an event to wait for in the middle of a large file
        self.claimed = {}  # wrong sizes to claim
        self.servers = [Server(("127.0.0.1", 0), self.handler()) for _ in range(2)]
        self.url, self.store = (f"http://127.0.0.1:{server.server_port}" for server in self.servers)
        for server in self.servers:
            threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self):
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def is_large(self, name):
        return name.endswith(".safetensors")

    def listing(self):
        siblings = []
        for name, data in self.files.items():
            blob = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
            entry = {"rfilename": name, "size": self.claimed.get(name, len(data)), "blobId": blob}
            if self.is_large(name):
                entry["lfs"] = {"sha256": hashlib.sha256(data).hexdigest(), "size": entry["size"], "pointerSize": 134}
            siblings.append(entry)
        return {"id": self.repository, "modelId": self.repository, "sha": COMMIT, "private": False, "tags": [],
                "downloads": 1, "likes": 1, "siblings": siblings}

    def handler(self):
        hub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def reply(self, status, body=b"", **headers):
                self.send_response(status)
                for key, value in headers.items():
                    self.send_header(key.replace("_", "-"), value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                return body if self.command == "GET" else b""

            def first_byte(self):
                asked = self.headers.get("Range", "")
                return int(asked[len("bytes=") :].rstrip("-").split("-")[0]) if hub.ranges and asked else 0

            def send_file(self, name, data, **headers):
                first = self.first_byte()
                if first >= len(data) > 0:
                    self.wfile.write(self.reply(416))
                    return
                if first:
                    headers["Content_Range"] = f"bytes {first}-{len(data) - 1}/{len(data)}"
                body = self.reply(206 if first else 200, data[first:], Accept_Ranges="bytes", **headers)
                if hub.damage and hub.is_large(name):
                    body = body[:-1] + bytes([body[-1] ^ 1])
                if hub.cuts and hub.is_large(name):
                    body = body[: hub.cuts.pop(0)]
                    self.close_connection = True
                if hub.pause and hub.is_large(name):
                    self.wfile.write(body[: len(body) // 2])
                    self.wfile.flush()
                    hub.sent += len(body) // 2
                    hub.pause.wait(60)
                    body = body[len(body) // 2 :]
                hub.sent += len(body)
                try:
                    self.wfile.write(body)
                except OSError:  # the client is gone
                    self.close_connection = True

            def do_HEAD(self):
                self.do_GET()

            def do_GET(self):
                path = urllib.parse.urlsplit(self.path).path
                hub.requests.append((path, self.headers.get("Range"), self.headers.get("Authorization")))
                at_store = self.server is hub.servers[1]
                if at_store:
                    name = path.rpartition("/")[2]
                    return self.send_file(name, hub.files[name], ETag=f'"{name}"')
                if hub.token and self.headers.get("Authorization") != f"Bearer {hub.token}":
                    return self.wfile.write(self.reply(401, b'{"error":"Invalid username or password."}'))
                prefix = f"/{hub.repository}/resolve/{COMMIT}/"
                if path in (f"/api/models/{hub.repository}/revision/main", f"/api/models/{hub.repository}"):
                    return self.wfile.write(self.reply(200, json.dumps(hub.listing()).encode(),
                                                       Content_Type="application/json; charset=utf-8"))
                name = path[len(prefix) :] if path.startswith(prefix) else ""
                if name not in hub.files:
                    return self.wfile.write(self.reply(404, b'{"error":"Repository not found"}'))
                return self.send_known(name, hub.files[name])

            def send_known(self, name, data):
                if hub.is_large(name):
                    return self.wfile.write(self.reply(
                        302, b"Found. Redirecting", Location=f"{hub.store}/store/{name}", X_Repo_Commit=COMMIT,
                        X_Linked_Size=str(len(data)), X_Linked_ETag=f'"{hashlib.sha256(data).hexdigest()}"'))
                blob = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
                return self.send_file(name, data, ETag=f'"{blob}"', X_Repo_Commit=COMMIT)

        return Handler

"""The options of sluice serve: keys, HTTPS, conversations, logs."""

import contextlib
import http.client
import json
import pathlib
import shutil
import ssl
import subprocess
import tempfile
import unittest

from served import SECONDS, SLUICE, STORY, Server


class Options(unittest.TestCase):
    def test_keys(self):
        with Server("--api-key", "secret", "--api-key", "other", "--strict-model", "--alias", "tale",
                    "--cors", "https://good.example") as server:
            self.assertEqual(server.request("GET", "/health")[0], 200)
            self.assertEqual(server.request("GET", "/v1/models")[0], 401)
            self.assertEqual(server.request("POST", "/v1/chat/completions", {"messages": STORY})[0], 401)
            for headers in ({"Authorization": "Bearer secret"}, {"X-Api-Key": "other"}):
                self.assertEqual(server.request("GET", "/v1/models", headers=headers)[0], 200)
            for wrong in ("", "secre", "secrets", "Secret"):
                self.assertEqual(server.request("GET", "/v1/models", headers={"X-Api-Key": wrong})[0], 401)
            key = {"Authorization": "Bearer secret"}
            asked = {"messages": STORY, "max_tokens": 2}
            self.assertEqual(server.post("/v1/chat/completions", asked | {"model": "gpt-4"}, **key)[0], 404)
            self.assertEqual(server.post("/v1/chat/completions", asked | {"model": "tale"}, **key)[0], 200)
            # Responses belong to the key that requested them.
            kept = server.post("/v1/responses", {"input": "Hi", "max_output_tokens": 2}, **key)[1]["id"]
            self.assertEqual(server.request("GET", "/v1/responses/" + kept, headers=key)[0], 200)
            self.assertEqual(server.request("GET", "/v1/responses/" + kept, headers={"X-Api-Key": "other"})[0], 404)
            preflight = server.request("OPTIONS", "/v1/models", headers={"Origin": "https://good.example"})
            self.assertEqual((preflight[0], preflight[1]["Access-Control-Allow-Origin"]), (200, "https://good.example"))
            preflight = server.request("OPTIONS", "/v1/models", headers={"Origin": "https://evil.example"})
            self.assertIsNone(preflight[1]["Access-Control-Allow-Origin"])
            self.assertEqual(server.request("GET", "/v1/models", headers=key | {"Origin": "https://evil.example"})[0], 403)

    def test_other_machines_need_a_key(self):
        run = subprocess.run([SLUICE, "serve", "--host", "0.0.0.0", "--port", "0"], capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual(run.returncode, 1)
        self.assertIn("--api-key", run.stderr)

    def test_files_without_keys(self):
        with tempfile.TemporaryDirectory() as folder:
            empty = pathlib.Path(folder, "empty")
            empty.write_text("# none\n\n")
            for file, wrong in ((empty, "there is no key in"), (folder, "cannot read the keys in"), (f"{folder}/none", "cannot read the keys in")):
                run = subprocess.run([SLUICE, "serve", "--port", "0", "--api-key-file", str(file)], text=True, capture_output=True, timeout=SECONDS)
                self.assertEqual((run.returncode, run.stdout), (1, ""))
                self.assertEqual(run.stderr, f"sluice: {wrong} '{file}'\n")

    @unittest.skipUnless(shutil.which("openssl"), "a certificate is made with openssl")
    def test_https(self):
        with tempfile.TemporaryDirectory() as folder:
            certificate, key = f"{folder}/certificate.pem", f"{folder}/key.pem"
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                            "-keyout", key, "-out", certificate], check=True, capture_output=True)
            with Server("--tls-cert", certificate, "--tls-key", key) as server:
                context = ssl.create_default_context(cafile=certificate)
                connection = http.client.HTTPSConnection("localhost", server.port, timeout=SECONDS, context=context)
                with contextlib.closing(connection):
                    for stream in (False, True):
                        body = json.dumps({"messages": STORY, "max_tokens": 4, "stream": stream})
                        connection.request("POST", "/v1/chat/completions", body)
                        answer = connection.getresponse()
                        self.assertEqual(answer.status, 200)
                        self.assertIn(b"choices", answer.read())
                self.assertEqual(server.raw(b"GET /health HTTP/1.1\r\n\r\n")[:4], b"")  # plain HTTP is not answered

    def test_conversations_and_access_log(self):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder, "access.log")
            with Server("--data", pathlib.Path(folder, "data"), "--access-log", log) as server:
                path = "/v1/sluice/conversations/one"
                kept = {"id": "one", "title": "A talk", "updated": 5, "nodes": []}
                self.assertEqual(server.request("PUT", path, kept)[0], 200)
                self.assertEqual(json.loads(server.request("GET", path)[2]), kept)
                listed = json.loads(server.request("GET", "/v1/sluice/conversations")[2])["data"]
                self.assertEqual(listed, [{"id": "one", "title": "A talk", "updated": 5}])
                self.assertEqual(server.request("PUT", "/v1/sluice/conversations/..%2f..%2fx", kept)[0], 400)
                self.assertEqual(server.request("DELETE", path)[0], 200)
                self.assertEqual(server.request("GET", path)[0], 404)
                self.assertTrue(json.loads(server.request("GET", "/v1/sluice/state")[2])["data"])
            lines = [json.loads(line) for line in log.read_text().splitlines()]
            self.assertEqual([line["status"] for line in lines], [200, 200, 200, 400, 200, 404, 200])


if __name__ == "__main__":
    unittest.main()

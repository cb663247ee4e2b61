"""The OpenAPI description, and the curl commands in docs/server.md."""

import json
import pathlib
import subprocess
import tempfile
import unittest

from served import SECONDS, Server


class Documentation(unittest.TestCase):
    def test_every_operation_of_the_description(self):
        with tempfile.TemporaryDirectory() as folder, Server("--data", folder) as server:
            paths = json.loads(server.request("GET", "/openapi.json")[2])["paths"]
            self.assertGreater(len(paths), 15)
            for path, methods in paths.items():
                for method in methods:
                    status, _, body = server.request(method.upper(), path.replace("{id}", "nobody"), b"{}" if method in ("post", "put") else None)
                    self.assertIn(status, (200, 400, 404), path)
                    if status == 404:  # of an object, not of the path
                        self.assertIn("{id}", path)
                        self.assertNotIn(b"nothing at this path", body)
                self.assertIn(server.request("PATCH", path.replace("{id}", "nobody"))[0], (405,), path)

    def test_every_line_of_curl(self):
        text = pathlib.Path(__file__).parents[2].joinpath("docs/server.md").read_text()
        lines = [line for block in text.split("```sh\n")[1:] for line in block.split("```")[0].replace("\\\n", " ").splitlines()
                 if "curl" in line]
        self.assertGreater(len(lines), 15)
        with tempfile.TemporaryDirectory() as folder, Server("--data", folder) as server:
            script = "curl() { command curl -sS --fail-with-body --max-time 60 \"$@\"; }\n"
            for line in lines:
                script += "{ " + line.replace("http://127.0.0.1:8080", server.url) + "; } >out || { cat out >&2; exit 1; }\n"
            run = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, timeout=SECONDS)
            self.assertEqual(run.returncode, 0, run.stderr)


if __name__ == "__main__":
    unittest.main()

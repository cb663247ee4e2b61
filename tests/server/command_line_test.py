"""sluice run and sluice chat as clients of a server."""

import subprocess
import unittest

from served import SECONDS, SLUICE, STORY, SharedServer


class CommandLine(SharedServer):
    def sluice(self, *arguments, **options):
        return subprocess.run([SLUICE, *map(str, arguments), "--server", self.server.url], capture_output=True, text=True,
                              timeout=SECONDS, **options)

    def test_run_and_chat_use_a_running_server(self):
        greedy = ("-n", 8, "--temperature", 0)
        alone = self.server.chat()[1]["choices"][0]["message"]["content"]
        run = self.sluice("run", STORY[0]["content"], *greedy)
        self.assertEqual((run.returncode, run.stdout), (0, alone + "\n"), run.stderr)
        run = self.sluice("run", "Once upon", "--raw", *greedy)
        self.assertTrue(run.stdout.startswith("Once upon a time"), run)
        run = self.sluice("chat", *greedy, input=STORY[0]["content"] + "\nAnd then?\n")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn(alone, run.stdout)

    def test_a_server_that_is_not_there(self):
        run = subprocess.run([SLUICE, "run", "x", "--server", "http://127.0.0.1:1"], capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual(run.returncode, 1)
        self.assertIn("cannot be reached", run.stderr)
        self.assertEqual(self.sluice("run", "word " * 5000).returncode, 1)


if __name__ == "__main__":
    unittest.main()

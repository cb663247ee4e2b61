#!/usr/bin/env python3
"""Several processes that share a model over MPI: they compute the bits of one process, and report a lost one.

    nodes_test.py SLUICE FOLDER_OF_TINY_MODELS MPIRUN SLOW_MPI
"""

import json
import os
import pathlib
import platform
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from launched import ENVIRONMENT, launcher, processes_of

SLOW_MPI = sys.argv.pop(4)
MPIRUN = sys.argv.pop(3)
MODELS = pathlib.Path(sys.argv.pop(2))
SLUICE = sys.argv.pop(1)
BUNDLED = pathlib.Path(__file__).parents[1] / "models"
SECONDS = 120  # for anything: machines may be slow and busy
# Containers may not let one process read another's memory.
SHARED_MEMORY = ("--mca", "btl", "vader,self", "--mca", "btl_vader_single_copy_mechanism", "none")
TCP = ("--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo")
TOKENS = ",".join(str((7 * i * i + 3) % 90) for i in range(150))


def command(nodes, *arguments, over=SHARED_MEMORY):
    return [*launcher(MPIRUN, nodes, *over), SLUICE, *map(str, arguments)]


def run(nodes, *arguments, over=SHARED_MEMORY, **options):
    return subprocess.run(command(nodes, *arguments, over=over), text=True, timeout=SECONDS,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          **{"stdin": subprocess.DEVNULL, "env": ENVIRONMENT} | options)


def alone(*arguments):
    return subprocess.run([SLUICE, *map(str, arguments)], text=True, timeout=SECONDS, check=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE).stdout


def ignores(process, number):
    (mask,) = re.findall(r"^SigIgn:\t([0-9a-f]+)$", pathlib.Path(f"/proc/{process}/status").read_text(), re.MULTILINE)
    return int(mask, 16) >> (number - 1) & 1


class NodesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def logits(self, model, *options):
        def written(out):
            return ["logits", model, "--tokens", TOKENS, "--greedy", 8, "--threads", 1, "--out", out, *options]
        return written

    def check_bits(self, model, nodes, over, *options, split="auto"):
        arguments = self.logits(model, "--prefill-chunk", 64, *options)
        one = self.folder / "-".join(map(str, [model.name, *options]))
        if not one.exists():
            alone(*arguments(one))
        ended = run(nodes, *arguments(self.folder / "many"), "--nodes", split, over=over)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(one.read_bytes(), (self.folder / "many").read_bytes(), f"{model} on {nodes}")

    def check_ways(self, model, choose):
        """Checks the layouts that `choose` selects for each number of nodes."""
        shape = json.loads(alone("inspect", model, "--json"))
        for nodes in (2, 3, 4):
            splits = {"auto": shape["layers"], "experts": shape["experts"], f"groups:1,{nodes - 1}": shape["experts"] + 1 if nodes > 2 else 0}
            ways = [(over, split) for over in (SHARED_MEMORY, TCP) for split, most in splits.items() if nodes <= most]
            for over, split in choose(nodes, ways) if ways and "SLUICE_ALL_NODES" not in os.environ else ways:
                with self.subTest(model=model.name, nodes=nodes, over=over[2], split=split):
                    self.check_bits(model, nodes, over, split=split)

    def test_bundled_models(self):
        """Every layout for several numbers of nodes, over one transport each; with SLUICE_ALL_NODES over both."""
        for number, name in enumerate(("delta-story", "latent-story")):
            self.check_ways(BUNDLED / name, lambda nodes, ways: [
                way for place, way in enumerate(ways) if sum(divmod(place, len(ways) // 2), nodes + number) % 2])
        self.check_bits(BUNDLED / "delta-story", 4, TCP, split="groups:2,2")
        self.check_bits(BUNDLED / "latent-story", 2, TCP, "--kv-bits", "4")

    def test_tiny_models(self):
        """One layout for several numbers of nodes; with SLUICE_ALL_NODES all possible layouts."""
        for number, model in enumerate(sorted(path.parent for path in MODELS.glob("*/config.json"))):
            self.check_ways(model, lambda nodes, ways: [ways[(number + 4 * nodes) % len(ways)]])
        self.check_bits(MODELS / "mlx-deepseek_v3-4bit", 2, SHARED_MEMORY, "--rounded")

    def test_streamed_experts(self):
        self.check_bits(BUNDLED / "delta-story", 2, TCP, "--rounded", "--expert-slots", "4")

    def test_irregular_and_streamed_experts_of_other_nodes(self):
        self.check_bits(MODELS / "qwen3_5_moe-irregular", 2, TCP, split="experts")
        self.check_bits(BUNDLED / "delta-story", 2, TCP, "--rounded", "--expert-slots", "2", split="experts")

    def test_prompts_are_remembered_in_files(self):
        prompt = "Once upon a time there was a dog that ran in the park. " * 30
        story = ["run", "--temperature", 0, "-n", 12, "--threads", 1, prompt]
        want = alone(*story)

        def files(folder):
            return {path.name: path.read_bytes() for path in folder.glob("*.prefix")}

        self.assertEqual(alone(*story, "--cache-disk", self.folder / "alone"), want)
        self.assertTrue(files(self.folder / "alone"))
        for nodes, split in ((2, "experts"), (3, "auto"), (3, "groups:1,2")):
            folder = self.folder / split.replace(":", "")
            for _ in range(2):  # the second run reads what the first one wrote
                ended = run(nodes, *story, "--nodes", split, "--cache-disk", folder)
                self.assertEqual(ended.returncode, 0, ended.stderr)
                self.assertEqual(ended.stdout, want)
                self.assertEqual(files(folder), files(self.folder / "alone"), split)

    def test_stories_are_the_same(self):
        story = ["run", "--seed", 3, "-n", 40, "--threads", 1]
        ended = run(2, *story, "--nodes", "5,3")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(ended.stdout, alone(*story))

    def test_wrong_use_is_one_sentence(self):
        for arguments, words in ((["--nodes", "3,4"], "7 layers"), (["--nodes", "x"], "12,20,8"), (["--nodes", ""], "12,20,8"),
                                 (["--nodes", "auto", "-m", "/nowhere"], "/nowhere"), (["--nodes", "auto", "--bogus"], "--bogus"),
                                 (["--nodes", "auto", "--kv-bits", "7"], "--kv-bits")):
            ended = run(2, "run", *arguments)
            self.assertNotEqual(ended.returncode, 0)
            said = [line for line in ended.stderr.splitlines() if line.startswith("sluice:")]
            self.assertEqual(len(said), 1, ended.stderr)
            self.assertIn(words, said[0])
        single = subprocess.run([SLUICE, "run", "--nodes", "auto"], text=True, timeout=SECONDS, env=ENVIRONMENT,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(single.returncode, 1)
        self.assertIn("mpirun", single.stderr)

    def test_who_forgets_nodes_is_told(self):
        story = ("run", "--seed", 3, "-n", 4, "--threads", 1)
        ended = run(2, *story)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(sorted(ended.stdout), sorted(2 * alone(*story)))  # both write at the same time
        self.assertEqual(ended.stderr.count("2 processes, which work independently"), 1, ended.stderr)

    def test_machines_are_measured_for_a_plan(self):
        ended = run(2, "plan", "--geometry", "qwen3.6-35b-a3b", "--threads", 1, "--nodes", "auto", "--json")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        plan = json.loads(ended.stdout)["nodes"]
        self.assertEqual(sorted(layout["layout"] for layout in plan["layouts"]), ["experts", "layers"])
        self.assertEqual(len(plan["measured"]["nodes"]), 2)
        for node in plan["measured"]["nodes"]:
            self.assertGreater(node["gb_per_s"], 0)
            self.assertGreater(node["memory_gb"], 0)
        self.assertGreater(plan["measured"]["network"]["gbit_per_s"], 0)
        # A file with the measured values gives the same plan.
        described = self.folder / "machines.json"
        described.write_text(json.dumps(plan["measured"]))
        again = json.loads(alone("plan", "--geometry", "qwen3.6-35b-a3b", "--nodes", described, "--json"))["nodes"]
        self.assertEqual([(layout["layout"], layout["nodes"]) for layout in plan["layouts"]],
                         [(layout["layout"], layout["nodes"]) for layout in again["layouts"]])

    @unittest.skipUnless(platform.machine() == "x86_64", "--isa avx2 is for x86")
    def test_instruction_sets_are_agreed_on(self):
        def story(*options):
            return ["run", "--seed", "3", "-n", "8", "--threads", "1", *options]

        def tell(first, second):
            return subprocess.run([*command(1, *story("--nodes", "auto", *first)), ":", "-n", "1", SLUICE,
                                   *story("--nodes", "auto", *second)], text=True, timeout=SECONDS, env=ENVIRONMENT,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

        lower = ["--isa", "avx2"]
        same = tell(lower, lower)
        self.assertEqual(same.returncode, 0, same.stderr)
        self.assertEqual(same.stdout, alone(*story(*lower)))
        different = tell(["--isa", "sse4"], lower)
        self.assertNotEqual(different.returncode, 0)
        self.assertRegex(different.stderr, r"sluice: arithmetic differs: node 0 \(.*\) has cpu \(.*sse4.*, "
                                           r"node 1 \(.*\) has cpu \(.*avx2.*--isa")

    def test_who_does_not_join_is_named(self):
        """MPI waits for all nodes without reporting which are missing."""
        story = ["run", "--nodes", "auto", "-n", "8"]
        stopped = ["-n", "1", "sh", "-c", "kill -STOP $$"]
        for rank, jobs in ((1, (command(1, *story), stopped, ["-n", "1", SLUICE, *story])),
                           (0, ([*launcher(MPIRUN, 1, *SHARED_MEMORY), *stopped[2:]], ["-n", "1", SLUICE, *story]))):
            with self.subTest(rank=rank):
                ended = subprocess.run(" : ".join(map(shlex.join, jobs)), shell=True, text=True, timeout=SECONDS, env=ENVIRONMENT,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                self.assertNotEqual(ended.returncode, 0)
                said = [line for line in ended.stderr.splitlines() if line.startswith("sluice:")]
                self.assertEqual(len(said), 1, ended.stderr)
                self.assertRegex(said[0], rf"sluice: node {rank} \(.+\) has not joined within")

    def test_what_one_node_lacks_is_told_once_and_of_which(self):
        def tell(*models):
            jobs = [["-n", "1", SLUICE, "run", "--nodes", "auto", "-m", model] for model in models]
            jobs = [word for job in jobs for word in (*job, ":")][:-1]
            ended = subprocess.run([*launcher(MPIRUN, 1, *SHARED_MEMORY)[:-2], *jobs], text=True, timeout=SECONDS, env=ENVIRONMENT,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertNotEqual(ended.returncode, 0)
            said = [line for line in ended.stderr.splitlines() if line.startswith("sluice:")]
            self.assertEqual(len(said), 1, ended.stderr)
            return said[0]
        self.assertRegex(tell("lacking", "lacking"), "^sluice: 'lacking' is neither")
        self.assertRegex(tell("delta-story", "lacking"), r"node 1 \(.+\): 'lacking' is neither")
        self.assertRegex(tell("delta-story", "latent-story"), r"the checkpoint differs: node 0 \(.+\) has \w+, node 1 \(")

    def test_who_is_slow_to_join_is_waited_for(self):
        slow = {"LD_PRELOAD": SLOW_MPI, "SLUICE_SLOW_RANK": "1", "SLUICE_SLOW_SECONDS": "8", "SLUICE_SLOW_PUBLISH": "4500"}
        ended = run(2, "run", "--nodes", "auto", "-n", "8", "--seed", "3", env=ENVIRONMENT | slow)
        self.assertEqual(ended.returncode, 0, ended.stderr)

    def lose(self, how, rank, over):
        """Kills or stops one of three nodes in the middle of a story; returns the others' output."""
        # An answer whose form does not end before the context does.
        arguments = command(3, "run", "-n", 100000, "--ctx", 2048, "--regex", "[a-z ,.]{20000}", "--threads", 1,
                            "--nodes", "auto", "Once upon a time", over=over)
        with subprocess.Popen(arguments, text=True, env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as job:
            try:
                self.assertTrue(job.stdout.read(60))  # it has begun its story
                ranks = processes_of(job.pid)
                self.assertEqual(sorted(ranks), [0, 1, 2])
                for pid in ranks.values():  # writing to a lost node must not kill the process that would name it
                    self.assertTrue(ignores(pid, signal.SIGPIPE), "SIGPIPE ends this node")
                os.kill(ranks[rank], how)
                _, said = job.communicate(timeout=SECONDS)
            except BaseException:
                job.kill()
                raise
        self.assertNotEqual(job.returncode, 0)
        deadline = time.monotonic() + SECONDS
        while any(pathlib.Path(f"/proc/{pid}").exists() for pid in ranks.values()):
            self.assertLess(time.monotonic(), deadline, "a process is left")
            time.sleep(0.1)
        return said

    def test_a_killed_node_ends_all(self):
        for rank, over in ((1, TCP), (2, SHARED_MEMORY)):
            self.assertRegex(self.lose(signal.SIGKILL, rank, over), rf"rank {rank} |node {rank} ")

    def test_a_stopped_node_ends_all(self):
        for rank, over in ((0, SHARED_MEMORY), (2, TCP)):
            self.assertRegex(self.lose(signal.SIGSTOP, rank, over), rf"node {rank} \(.*\) has been silent")


if __name__ == "__main__":
    unittest.main()

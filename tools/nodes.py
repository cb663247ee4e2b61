#!/usr/bin/env python3
"""Simulated machines: network namespaces with links of a given rate, in which nodes share a model over MPI.

    tools/nodes.py SLUICE [--hosts 3] [--rate 1gbit] [--faults 50 [--seed N]] [--model MODEL]
    tools/nodes.py SLUICE --plan --hosts 2

Checks that the bits are those of one process, prints the speed, and then repeatedly loses a node in the middle of an answer
or at the start: by SIGKILL, by SIGSTOP, and by taking its link down. All others must end within 10 s with a sentence that names
it, no process may remain, and the answer until then must be that of one process. Needs root."""

import argparse
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PREFIX = f"sluice{os.getpid()}n"
TOKENS = ",".join(str((7 * i * i + 3) % 90) for i in range(150))
PLANNED = "qwen3.6-35b-a3b:layers=8,experts=64,vocab=32768"
MOST_SECONDS = 10
MPIRUN_SECONDS = 20  # it waits this long for stopped processes before it kills them
GIVE_UP_SECONDS = 40
# Otherwise mpirun itself waits for minutes for an unreachable machine, see docs/cluster.md.
NOTICE_LOST_LINKS = ("--mca", "oob_tcp_keepalive_time", "2", "--mca", "oob_tcp_keepalive_intvl", "1",
                     "--mca", "oob_tcp_keepalive_probes", "4")
RETRIES = 5  # of TCP, for the same reason
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def address(host):
    return f"10.9.0.{host + 1}"


class Hosts:
    """Namespaces on one bridge, and the script through which mpirun reaches them."""

    def __init__(self, count, rate):
        self.count = count
        self.bridge = f"br{os.getpid() % 100000}"
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.agent = self.folder / "agent"
        # Host names without dots and separate folders, so that Open MPI's daemons do not mistake one another.
        self.agent.write_text("#!/bin/sh\nhost=$(( ${1##*.} - 1 ))\nshift\n"
                              f"export TMPDIR={self.folder}/$host\nmkdir -p $TMPDIR\n"
                              f'exec ip netns exec {PREFIX}$host unshare --uts sh -c "hostname machine$host; $*"\n')
        self.agent.chmod(0o755)
        ip("netns", "add", f"{PREFIX}b")
        self.in_bridge("link", "add", self.bridge, "type", "bridge")
        self.in_bridge("link", "set", self.bridge, "up")
        for host in range(count):
            self.connect(host, rate)

    def in_bridge(self, *words):
        ip("-n", f"{PREFIX}b", *words)

    def connect(self, host, rate):
        name, link = f"{PREFIX}{host}", self.port(host)
        ip("netns", "add", name)
        ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", name)
        ip("link", "set", link, "netns", f"{PREFIX}b")
        self.in_bridge("link", "set", link, "master", self.bridge, "up")
        ip("-n", name, "addr", "add", f"{address(host)}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            ip("-n", name, "link", "set", device, "up")
        subprocess.run(["ip", "netns", "exec", name, "sh", "-c", f"echo {RETRIES} > /proc/sys/net/ipv4/tcp_retries2"], check=True)
        self.set_rate(host, rate)

    def port(self, host):
        """Of the bridge."""
        return f"v{os.getpid() % 100000}h{host}"

    def set_rate(self, host, rate):
        """In both directions. The burst size is small, because rows would otherwise pass unlimited."""
        burst = "32kb" if rate == "1gbit" else "256kb"
        for name, device in ((f"{PREFIX}{host}", "eth0"), (f"{PREFIX}b", self.port(host))):
            subprocess.run(["ip", "netns", "exec", name, "tc", "qdisc", "replace", "dev", device, "root", "tbf", "rate",
                            rate, "burst", burst, "latency", "50ms"], check=True)

    def set_link(self, host, state):
        ip("-n", f"{PREFIX}{host}", "link", "set", "eth0", state)

    def close(self):
        self.kill_all()
        for name in [*(str(host) for host in range(self.count)), "b"]:
            subprocess.run(["ip", "netns", "del", PREFIX + name], check=False)
        shutil.rmtree(self.folder)

    def command(self, *arguments):
        hosts = ",".join(address(host) for host in range(self.count))
        return ["ip", "netns", "exec", f"{PREFIX}0", "mpirun", "--host", hosts, "--bind-to", "none", "--mca", "plm_rsh_agent",
                str(self.agent), "--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include",
                "10.9.0.0/24", "--mca", "oob_tcp_if_include", "10.9.0.0/24", *NOTICE_LOST_LINKS, *map(str, arguments)]

    def kill_all(self):
        for host in range(self.count):
            listed = subprocess.run(["ip", "netns", "pids", f"{PREFIX}{host}"], text=True, capture_output=True, check=True)
            for pid in listed.stdout.split():
                with contextlib.suppress(OSError):
                    os.kill(int(pid), signal.SIGKILL)

    def processes(self, program):
        """Ids of the program's processes, by host."""
        found = {}
        for host in range(self.count):
            listed = subprocess.run(["ip", "netns", "pids", f"{PREFIX}{host}"], text=True, capture_output=True, check=True)
            for pid in listed.stdout.split():
                with contextlib.suppress(OSError):
                    if os.path.samefile(f"/proc/{pid}/exe", program):
                        found[host] = int(pid)
        return found


def runs(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def check_bits(hosts, program, model):
    with tempfile.TemporaryDirectory() as folder:
        def arguments(name):
            return ["logits", model, "--tokens", TOKENS, "--greedy", "16", "--out", f"{folder}/{name}"]
        subprocess.run([program, *arguments("one")], check=True)
        well = True
        for split in ("auto", "experts"):
            subprocess.run(hosts.command(program, *arguments("many"), "--nodes", split), check=True, env=ENVIRONMENT)
            same = pathlib.Path(folder, "one").read_bytes() == pathlib.Path(folder, "many").read_bytes()
            print(f"bits, --nodes {split}: " + ("equal to one process" if same else "DIFFERENT"), flush=True)
            well = well and same
    return well


def print_speed(hosts, program, model):
    arguments = ["bench", model, "-p", "256", "-n", "32", "--json"]
    for name, command in (("one process", [program, *arguments]),
                          (f"{hosts.count} nodes, auto", hosts.command(program, *arguments, "--nodes", "auto")),
                          (f"{hosts.count} nodes, experts", hosts.command(program, *arguments, "--nodes", "experts"))):
        bench = json.loads(subprocess.run(command, text=True, check=True, env=ENVIRONMENT, capture_output=True).stdout)
        print(f"{name}: prompts {bench['prefill_tok_per_s']:.0f} tok/s, decode {bench['decode_tok_per_s']:.1f}", flush=True)


def check_plan(hosts, program, folder):
    """Compares the forecast of `sluice plan`, based on the speed of a single process, with the hosts' speed."""
    model = f"{folder}/planned"
    subprocess.run([program, "random", "--geometry", PLANNED, model], check=True, stdout=subprocess.DEVNULL)
    bench = ["bench", model, "-p", "0", "-n", "24", "-r", "5", "--threads", "1", "--json"]
    plan = ["plan", model, "--threads", "1", "--json", "--nodes"]

    def read(command):
        return json.loads(subprocess.run(command, text=True, check=True, env=ENVIRONMENT, capture_output=True).stdout)
    well = True
    for rate in ("1gbit", "10gbit"):
        for host in range(hosts.count):
            hosts.set_rate(host, rate)
        alone = read([program, *bench])["decode_tok_per_s"]
        live = read(hosts.command(program, *plan, "auto"))["nodes"]["measured"]
        print(f"plan at {rate}: measured {live['network']['gbit_per_s']:.2f} Gb/s, {live['network']['round_trip_us']:.0f} us; "
              f"one process {alone:.1f} tok/s", flush=True)
        # Memory bandwidth gives an upper bound; a plan based on one machine's speed with the model is a forecast.
        summary = read([program, "plan", model, "--json"])
        per_token = summary["bytes_per_token"]
        for node in live["nodes"]:
            node["gb_per_s"] = alone * per_token / 1e9
        described = pathlib.Path(folder, "machines.json")
        described.write_text(json.dumps(live))
        for layout in read([program, *plan, described])["nodes"]["layouts"]:
            split = layout["nodes"]
            got = read(hosts.command(program, *bench, "--nodes", split))["decode_tok_per_s"]
            ratio = got / layout["decode_tok_per_s"]
            fine = abs(ratio - 1) <= 0.2
            well = well and fine
            print(f"  --nodes {split}: {got:.1f} tok/s, {layout['decode_tok_per_s']:.1f} expected, {ratio:.2f} of it"
                  f"{'' if fine else '  MORE THAN 20% OFF'}", flush=True)
    return well


def long_answer(model):
    """Arguments for an answer whose form does not end before the context does."""
    return ["run", "-m", model, "-n", "100000", "--ctx", "2048", "--regex", "[a-z ,.]{20000}", "--threads", "1", "--seed", "5",
            "Once upon a time"]


def lose_one(hosts, program, model, fault):
    """Returns the seconds until all others ended, and until mpirun did, the answer, the messages, and who did not end."""
    how, host, delay, split, at_start = fault
    command = hosts.command(program, *long_answer(model), "--nodes", split)
    # Separate from the answer, because warnings are printed before it begins.
    with tempfile.TemporaryFile("w+") as errors, subprocess.Popen(
            command, text=True, env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors) as job:
        answer = ""
        if at_start:
            while len(hosts.processes(program)) < hosts.count and job.poll() is None:
                time.sleep(0.02)
        else:
            answer = job.stdout.read(20)
        time.sleep(delay)
        processes = hosts.processes(program)
        while host not in processes and job.poll() is None:  # it is just starting
            processes = hosts.processes(program)
        if host not in processes:
            errors.seek(0)
            return 0, 0, answer, f"it ended by itself with status {job.returncode}: {errors.read()}", []
        start = time.monotonic()
        if len(processes) < hosts.count and not at_start:
            hosts.kill_all()
            errors.seek(0)
            return 0, 0, answer, f"it ended by itself: {errors.read()}", []
        if how == "link":
            hosts.set_link(host, "down")
        else:
            os.kill(processes[host], how)
        # The lost node itself may stay running, out of reach.
        others = set(processes.values()) - {processes[host]}
        while any(map(runs, others)) and time.monotonic() - start < GIVE_UP_SECONDS:
            time.sleep(0.05)
        seconds = time.monotonic() - start
        while job.poll() is None and time.monotonic() - start < GIVE_UP_SECONDS:
            time.sleep(0.05)
        all_seconds = time.monotonic() - start
        left = [pid for pid in others if runs(pid)]
        hosts.kill_all()
        answer += job.stdout.read()  # all processes that could write are gone
        job.wait(timeout=GIVE_UP_SECONDS)
        errors.seek(0)
        said = errors.read()
    if how == "link":
        hosts.set_link(host, "up")
    return seconds, all_seconds, answer, said, left


def check_faults(hosts, program, model, count, seed):
    whole = subprocess.run([program, *long_answer(model)], text=True, capture_output=True, stdin=subprocess.DEVNULL, check=True).stdout
    print(f"faults: seed {seed}", flush=True)
    draw = random.Random(seed)
    bad = nameless = 0
    for number in range(count):
        how = draw.choice([signal.SIGKILL, signal.SIGSTOP, "link"])
        host = draw.randrange(hosts.count)
        split = draw.choice(["auto", "experts"])
        at_start = number % 3 == 2
        seconds, all_seconds, answer, said, left = lose_one(hosts, program, model, (how, host, draw.random(), split, at_start))
        # A leading node that is cut off takes the others for lost. MPI does not report who has not joined.
        lost = r"\d+" if how == "link" and host == 0 else host
        named = re.search(rf"rank {lost}\b|node {lost} \(|node {lost} has not come", said)
        unnamed = not named and at_start and "a node has not joined" in said
        wrong = [what for what, found in (("NOT NAMED", not named and not unnamed), ("WRONG TOKENS", not whole.startswith(answer.rstrip("\n"))),
                                          ("TOO EARLY", how != signal.SIGKILL and seconds < 1), ("TOO LATE", seconds > MOST_SECONDS or all_seconds > MPIRUN_SECONDS), ("LEFT OVER", bool(left)))
                 if found]
        bad += bool(wrong)
        # mpirun's own messages would hide them.
        own = " ".join(line for line in said.splitlines() if line.startswith(("sluice:", "it ended"))) or said[-600:]
        nameless += bool(unnamed)
        print(f"{number}: {getattr(how, 'name', how)} of node {host}, {'at the start' if at_start else 'in an answer'}, --nodes {split}: {seconds:.1f} s, mpirun {all_seconds:.1f} s{', without its number' if unnamed else ''}{'  FAILED: ' + ', '.join(wrong) + ': ' + own if wrong else ''}",
              flush=True)
    print(f"faults: {count - bad} of {count} well, {nameless} before MPI could say who", flush=True)
    return bad == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sluice")
    parser.add_argument("--hosts", type=int, default=3)
    parser.add_argument("--rate", default="1gbit")
    parser.add_argument("--plan", action="store_true", help="compare the plan with what is measured, and nothing else")
    parser.add_argument("--faults", type=int, default=50)
    parser.add_argument("--seed", type=int, default=int(time.time()), help="which faults are drawn")
    parser.add_argument("--model", default=str(ROOT / "models/delta-story"))
    options = parser.parse_args()
    program = str(pathlib.Path(options.sluice).resolve())
    hosts = Hosts(options.hosts, options.rate)
    try:
        if options.plan:
            with tempfile.TemporaryDirectory() as folder:
                return 0 if check_plan(hosts, program, folder) else 1
        well = check_bits(hosts, program, options.model)
        print_speed(hosts, program, options.model)
        return 0 if check_faults(hosts, program, options.model, options.faults, options.seed) and well else 1
    finally:
        hosts.close()


if __name__ == "__main__":
    sys.exit(main())

"""OpenAI's protocol: chat, completions, responses."""

import itertools
import json
import math
import pathlib
import struct
import subprocess
import tempfile
import unittest

from served import SECONDS, SLUICE, STORY, SharedServer, events


def logits_of(model, ids):
    """The logits of `sluice logits`, one row per token."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "logits.safetensors")
        subprocess.run([SLUICE, "logits", model, "--rounded", "--tokens", ",".join(map(str, ids)), "--out", out],
                       check=True, capture_output=True, timeout=SECONDS)
        data = out.read_bytes()
    size = struct.unpack_from("<Q", data)[0]
    entry = json.loads(data[8:8 + size])["logits"]
    count, width = entry["shape"]
    begin = 8 + size + entry["data_offsets"][0]
    return [struct.unpack_from(f"<{width}f", data, begin + 4 * width * i) for i in range(count)]


class OpenAI(SharedServer):
    def test_models(self):
        status, _, body = self.server.request("GET", "/v1/models")
        self.assertEqual((status, json.loads(body)["data"][0]["id"]), (200, "delta-story"))
        self.assertEqual(self.server.request("GET", "/models/delta-story")[0], 200)
        self.assertEqual(self.server.request("GET", "/models/other")[0], 404)

    def test_chat_whole_equals_streamed(self):
        for fields in ({}, {"n": 2, "temperature": 1, "seed": 7, "top_p": 0.9}, {"stop": [" the"]}):
            status, whole = self.server.chat(**fields)
            self.assertEqual(status, 200, whole)
            body = {"messages": STORY, "max_tokens": 8, "temperature": 0, "stream": True,
                    "stream_options": {"include_usage": True}} | fields
            status, headers, text = self.server.request("POST", "/v1/chat/completions", body)
            self.assertEqual((status, headers["Content-Type"].split(";")[0]), (200, "text/event-stream"))
            *chunks, usage, done = events(text)
            self.assertEqual(done, "[DONE]")
            said = [""] * len(whole["choices"])
            for choice in (json.loads(chunk)["choices"][0] for chunk in chunks):
                said[choice["index"]] += choice["delta"].get("content") or ""
            self.assertEqual(said, [choice["message"]["content"] for choice in whole["choices"]])
            # The number of cached tokens may differ between the two; everything else must not.
            counted = json.loads(usage)["usage"]
            for name in ("prompt_tokens", "completion_tokens", "total_tokens"):
                self.assertEqual(counted[name], whole["usage"][name])

    def test_logprobs(self):
        _, whole = self.server.chat(logprobs=True, top_logprobs=3, max_tokens=4)
        content = whole["choices"][0]["logprobs"]["content"]
        self.assertEqual(len(content), 4)
        for token in content:
            self.assertEqual(len(token["top_logprobs"]), 3)
            self.assertEqual(token["token"], token["top_logprobs"][0]["token"])  # the most likely one was chosen
            self.assertLessEqual(token["logprob"], 0)
        self.assertEqual("".join(token["token"] for token in content), whole["choices"][0]["message"]["content"])

    def test_completions(self):
        asked = {"prompt": ["Once upon a time", "The cat"], "n": 2, "max_tokens": 5, "temperature": 1, "seed": 5, "logprobs": 1}
        status, whole = self.server.post("/v1/completions", asked)
        self.assertEqual(status, 200, whole)
        self.assertEqual([choice["index"] for choice in whole["choices"]], [0, 1, 2, 3])
        self.assertEqual(whole["usage"]["completion_tokens"], 20)
        _, alone = self.server.post("/v1/completions", asked | {"prompt": "The cat", "n": 1})
        self.assertEqual(alone["choices"][0]["text"], whole["choices"][2]["text"])
        ids = self.server.post("/tokenize", {"content": "The cat", "add_special": True})[1]["tokens"]
        _, by_ids = self.server.post("/v1/completions", asked | {"prompt": ids, "n": 1})
        self.assertEqual(by_ids["choices"][0]["text"], alone["choices"][0]["text"])
        _, echo = self.server.post("/v1/completions", {"prompt": "The cat", "max_tokens": 2, "echo": True})
        self.assertTrue(echo["choices"][0]["text"].startswith("The cat"))

    def test_logprobs_of_prompts(self):
        """They match the logits that `sluice logits` writes for the same tokens."""
        asked = {"max_tokens": 3, "temperature": 0, "logprobs": 2, "echo": True}
        text = "Once upon a time there was a dragon. It had a été 🐉 red ball."
        ids = self.server.post("/tokenize", {"content": text, "add_special": True})[1]["tokens"]
        rows = logits_of("delta-story", ids)
        status, whole = self.server.post("/v1/completions", asked | {"prompt": [text, "The cat"], "n": 2, "seed": 1})
        self.assertEqual(status, 200, whole)
        _, plain = self.server.post("/v1/completions", {"prompt": text, "max_tokens": 3, "temperature": 0, "logprobs": 2})
        for choice in whole["choices"][:2]:
            told = choice["logprobs"]
            self.assertTrue(choice["text"].startswith(text))
            self.assertEqual({len(values) for values in told.values()}, {len(ids) + 3})
            self.assertIsNone(told["token_logprobs"][0])
            self.assertIsNone(told["top_logprobs"][0])
            self.assertEqual("".join(told["tokens"][:4]), text[:told["text_offset"][4]])
            for i, row in enumerate(rows[:-1]):
                largest = max(row)
                total = math.log(math.fsum(math.exp(x - largest) for x in row))
                self.assertAlmostEqual(told["token_logprobs"][i + 1], row[ids[i + 1]] - largest - total, 9)
                top = sorted((x - largest - total for x in row), reverse=True)[:2]
                for want, got in zip(top, sorted(told["top_logprobs"][i + 1].values(), reverse=True), strict=True):
                    self.assertAlmostEqual(want, got, 9)
            for name in ("tokens", "token_logprobs", "top_logprobs"):
                self.assertEqual(told[name][len(ids):], plain["choices"][0]["logprobs"][name])
        # The request of a harness that only needs likelihoods.
        _, scored = self.server.post("/v1/completions", asked | {"prompt": ids, "max_tokens": 0})
        self.assertEqual(scored["choices"][0]["logprobs"]["token_logprobs"], whole["choices"][0]["logprobs"]["token_logprobs"][:len(ids)])
        self.assertEqual(scored["usage"]["completion_tokens"], 0)
        self.assertEqual(self.server.post("/v1/completions", asked | {"prompt": text, "stream": True})[0], 400)

    def test_the_best_of_several(self):
        asked = {"prompt": ["Once upon a time", "The cat"], "max_tokens": 6, "temperature": 1.5, "seed": 3, "logprobs": 0}
        status, all_of_them = self.server.post("/v1/completions", asked | {"n": 4})
        self.assertEqual(status, 200, all_of_them)
        status, best = self.server.post("/v1/completions", asked | {"n": 2, "best_of": 4})
        self.assertEqual(status, 200, best)

        def mean(choice):
            values = choice["logprobs"]["token_logprobs"]
            return sum(values) / len(values)

        expected = []
        for prompt in range(2):
            expected += sorted(all_of_them["choices"][4 * prompt:4 * prompt + 4], key=mean, reverse=True)[:2]
        self.assertEqual([one["text"] for one in best["choices"]], [one["text"] for one in expected])
        self.assertEqual([one["index"] for one in best["choices"]], [0, 1, 2, 3])
        self.assertEqual(best["usage"]["completion_tokens"], all_of_them["usage"]["completion_tokens"])
        for bad in ({"n": 3, "best_of": 2}, {"best_of": 2, "stream": True}, {"best_of": 21}):
            self.assertEqual(self.server.post("/v1/completions", asked | bad)[0], 400, bad)

    def test_tokens_that_are_parts_of_characters(self):
        text = "\u00e9\u00e9 na\u00efve \u2603!"
        asked = {"max_tokens": 40, "guided_choice": [text], "temperature": 0}
        status, whole = self.server.chat(**asked, logprobs=True)
        self.assertEqual((status, whole["choices"][0]["message"]["content"]), (200, text), whole)
        said = [byte for token in whole["choices"][0]["logprobs"]["content"] for byte in token["bytes"]]
        self.assertEqual(bytes(said).decode(), text)
        status, whole = self.server.post("/v1/completions", asked | {"prompt": "x", "logprobs": 0})
        logprobs = whole["choices"][0]["logprobs"]
        self.assertIn("bytes:\\xc3", logprobs["tokens"])
        for token, at in zip(logprobs["tokens"], logprobs["text_offset"]):
            if not token.startswith("bytes:"):
                self.assertEqual(text[at:at + len(token)], token)
        pieces = self.server.post("/tokenize", {"content": text, "with_pieces": True})[1]["tokens"]
        whole = b"".join(bytes(one["piece"]) if isinstance(one["piece"], list) else one["piece"].encode() for one in pieces)
        self.assertEqual(whole.decode(), text)

    def test_allowed_tools(self):
        tools = [{"type": "function", "function": {"name": name, "parameters": {
            "type": "object", "properties": {"at": {"enum": ["moon", "sun"]}}, "required": ["at"], "additionalProperties": False}}}
                 for name in ("look", "listen", "run")]
        allowed = {"mode": "required", "tools": [{"type": "function", "function": {"name": "listen"}}]}
        # A model this small may fill a call with blanks until the token limit: try seeds until one is complete.
        for seed in range(20):
            status, whole = self.server.chat(tools=tools, max_tokens=60, temperature=1, seed=seed,
                                             tool_choice={"type": "allowed_tools", "allowed_tools": allowed})
            self.assertEqual(status, 200, whole)
            if calls := whole["choices"][0]["message"].get("tool_calls"):
                break
        self.assertEqual({call["function"]["name"] for call in calls}, {"listen"})
        # The prompt lists all tools, allowed or not.
        self.assertEqual(self.server.chat(tools=tools)[1]["usage"]["prompt_tokens"], whole["usage"]["prompt_tokens"])
        flat = [{"type": "function"} | one["function"] for one in tools]
        for seed in range(20):
            status, whole = self.server.post("/v1/responses", {
                "input": "Look at the moon.", "tools": flat, "max_output_tokens": 60, "temperature": 1, "seed": seed,
                "tool_choice": {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "run"}]}})
            self.assertEqual(status, 200, whole)
            if names := {one["name"] for one in whole["output"] if one["type"] == "function_call"}:
                break
        self.assertEqual(names, {"run"})
        for bad in ({}, {"mode": "any", "tools": allowed["tools"]}, {"mode": "auto", "tools": []},
                    {"mode": "auto", "tools": [{"type": "function", "function": {"name": "fly"}}]}):
            status, error = self.server.chat(tools=tools, tool_choice={"type": "allowed_tools", "allowed_tools": bad})
            self.assertEqual((status, error["error"]["param"]), (400, "tool_choice"), bad)

    def test_truncation(self):
        turns = []
        for i in range(20):
            turns += [{"role": "user", "content": f"Question {i}: " + "word " * 150}, {"role": "assistant", "content": f"Answer {i}."}]
        asked = {"input": turns + STORY, "instructions": "You tell stories.", "max_output_tokens": 8}
        self.assertEqual(self.server.post("/v1/responses", asked)[1]["error"]["code"], "context_length_exceeded")
        status, whole = self.server.post("/v1/responses", asked | {"truncation": "auto"})
        self.assertEqual((status, whole.get("truncation")), (200, "auto"), whole)
        used = whole["usage"]["input_tokens"]
        # As many of the last questions as fit.
        counts = []
        for kept in (turns[-2 * n:] + STORY for n in range(1, 20)):
            counts.append(self.server.post("/v1/responses/input_tokens", asked | {"input": kept})[1]["input_tokens"])
        self.assertEqual(used, max(count for count in counts if count <= 2048 - 8))
        status, error = self.server.post("/v1/responses", asked | {"truncation": "auto", "input": "word " * 3000})
        self.assertEqual((status, error["error"]["code"]), (400, "context_length_exceeded"))
        self.assertEqual(self.server.post("/v1/responses", {"input": "x", "truncation": "middle"})[0], 400)

    def test_newer_parameters(self):
        self.assertEqual(self.server.chat(prompt_cache_options={"mode": "implicit"}, top_p=0)[0], 200)
        asked = {"input": "Hi", "max_output_tokens": 2, "prompt_cache_options": {"mode": "implicit"}, "context_management": []}
        self.assertEqual(self.server.post("/v1/responses", asked)[0], 200)
        status, error = self.server.chat(moderation={"model": "any"})
        self.assertEqual((status, error["error"]["code"]), (400, "unsupported_parameter"))
        status, error = self.server.post("/v1/responses", asked | {"context_management": [{"type": "compaction"}]})
        self.assertEqual((status, error["error"]["code"]), (400, "unsupported_parameter"))

    def test_an_answer_is_continued(self):
        _, first = self.server.chat(max_tokens=12)
        text = first["choices"][0]["message"]["content"]
        begun = STORY + [{"role": "assistant", "content": text[:9]}]
        _, rest = self.server.chat(messages=begun, max_tokens=4)
        self.assertEqual(text[:9], "Once upon")
        self.assertTrue(rest["choices"][0]["message"]["content"].startswith(" a time"))

    def test_schema(self):
        schema = {"type": "object", "properties": {"name": {"enum": ["Tim", "Lily"]}}, "required": ["name"],
                  "additionalProperties": False}
        form = {"type": "json_schema", "json_schema": {"name": "hero", "schema": schema}}
        choice = self.complete(response_format=form)
        self.assertIn(json.loads(choice["message"]["content"])["name"], ("Tim", "Lily"))
        whole = self.server.chat(guided_choice=["yes", "no"])[1]
        self.assertIn(whole["choices"][0]["message"]["content"], ("yes", "no"))

    def complete(self, **fields):
        """A complete answer: a model this small may fill a form with blanks until the token limit."""
        for seed in range(20):
            status, whole = self.server.chat(**fields, max_tokens=60, temperature=1, seed=seed)
            self.assertEqual(status, 200, whole)
            if whole["choices"][0]["finish_reason"] != "length":
                return whole["choices"][0]
        self.fail("no answer of twenty came to its end")

    def test_tools(self):
        tool = {"type": "function", "function": {"name": "look", "parameters": {
            "type": "object", "properties": {"at": {"enum": ["moon", "sun"]}}, "required": ["at"],
            "additionalProperties": False}}}
        choice = self.complete(tools=[tool], tool_choice="required")
        self.assertEqual(choice["finish_reason"], "tool_calls", choice)
        self.assertEqual(choice["message"]["tool_calls"][0]["function"]["name"], "look")
        self.assertIn(json.loads(choice["message"]["tool_calls"][0]["function"]["arguments"])["at"], ("moon", "sun"))

    def test_what_makes_no_sense(self):
        for fields, param in (({"temperature": "hot"}, "temperature"), ({"temperature": 3}, "temperature"),
                              ({"n": 0}, "n"), ({"colour": 1}, "colour"), ({"messages": []}, "messages"),
                              ({"messages": [{"role": "king", "content": "x"}]}, "messages[0].role"),
                              ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content"),
                              ({"logit_bias": {"x": 1}}, "logit_bias"), ({"top_logprobs": 2}, "top_logprobs"),
                              ({"tool_choice": "required"}, "tool_choice"), ({"audio": {}}, "audio")):
            status, answer = self.server.chat(**fields)
            self.assertEqual((status, answer["error"]["param"]), (400, param), answer)
            self.assertEqual(answer["error"]["type"], "invalid_request_error")
        status, answer = self.server.chat(messages=[{"role": "user", "content": "word " * 4000}])
        self.assertEqual((status, answer["error"]["code"]), (400, "context_length_exceeded"))

    def test_responses_with_logprobs(self):
        asked = {"input": "Tell me a story.", "max_output_tokens": 6, "temperature": 0, "top_logprobs": 2,
                 "include": ["message.output_text.logprobs"]}
        part = self.server.post("/v1/responses", asked)[1]["output"][0]["content"][0]
        self.assertEqual("".join(one["token"] for one in part["logprobs"]), part["text"])
        self.assertTrue(all(len(one["top_logprobs"]) == 2 for one in part["logprobs"]))
        streamed = [json.loads(one) for one in events(self.server.request("POST", "/v1/responses", asked | {"stream": True})[2])]
        told = [one for event in streamed if event["type"] == "response.output_text.delta" for one in event["logprobs"]]
        self.assertEqual(told, part["logprobs"])
        without = self.server.post("/v1/responses", asked | {"include": [], "top_logprobs": 0})[1]
        self.assertEqual(without["output"][0]["content"][0]["logprobs"], [])

    def test_counting_tokens(self):
        counted = self.server.post("/v1/chat/completions/input_tokens", {"messages": STORY})[1]["input_tokens"]
        self.assertEqual(counted, self.server.chat()[1]["usage"]["prompt_tokens"])
        counted = self.server.post("/v1/responses/input_tokens", {"input": "word " * 4000})[1]["input_tokens"]
        self.assertGreater(counted, 4000)  # more than an answer could be given for

    def test_begin_an_answer_or_continue_one(self):
        begun = STORY + [{"role": "assistant", "content": "Once upon"}]
        tokens = {name: self.server.chat(messages=begun, **fields)[1]["usage"]["prompt_tokens"]
                  for name, fields in (("continue", {}), ("begin", {"add_generation_prompt": True}))}
        self.assertGreater(tokens["begin"], tokens["continue"])
        status, answer = self.server.chat(messages=begun, add_generation_prompt=True, continue_final_message=True)
        self.assertEqual((status, answer["error"]["param"]), (400, "continue_final_message"))

    def test_responses(self):
        asked = {"input": "Tell me a story.", "max_output_tokens": 6, "temperature": 0}
        status, first = self.server.post("/v1/responses", asked)
        self.assertEqual((status, first["status"]), (200, "incomplete"), first)
        text = first["output"][0]["content"][0]["text"]
        streamed = events(self.server.request("POST", "/v1/responses", asked | {"stream": True})[2])
        deltas = [json.loads(one) for one in streamed]
        self.assertEqual("".join(one["delta"] for one in deltas if one["type"] == "response.output_text.delta"), text)
        self.assertEqual([one["sequence_number"] for one in deltas], list(range(len(deltas))))
        status, second = self.server.post("/v1/responses", asked | {"previous_response_id": first["id"], "input": "More."})
        self.assertEqual(status, 200)
        self.assertGreater(second["usage"]["input_tokens"], first["usage"]["input_tokens"])
        self.assertEqual(json.loads(self.server.request("GET", "/v1/responses/" + first["id"])[2]), first)
        self.assertEqual(self.server.request("DELETE", "/v1/responses/" + first["id"])[0], 200)
        self.assertEqual(self.server.request("GET", "/v1/responses/" + first["id"])[0], 404)

    def complete_response(self, **fields):
        """As `complete`, in the responses protocol."""
        for seed in range(20):
            asked = {"input": "Tell me a story.", "max_output_tokens": 60, "temperature": 1, "seed": seed} | fields
            status, whole = self.server.post("/v1/responses", asked)
            self.assertEqual(status, 200, whole)
            if whole["status"] == "completed":
                return asked, whole
        self.fail("no answer of twenty came to its end")

    def streamed_response(self, asked):
        return [json.loads(one) for one in events(self.server.request("POST", "/v1/responses", asked | {"stream": True})[2])]

    def test_responses_in_a_given_form(self):
        schema = {"type": "object", "properties": {"name": {"enum": ["Tim", "Lily"]}}, "required": ["name"],
                  "additionalProperties": False}
        asked, whole = self.complete_response(text={"format": {"type": "json_schema", "name": "hero", "schema": schema}})
        text = whole["output"][0]["content"][0]["text"]
        self.assertIn(json.loads(text)["name"], ("Tim", "Lily"))
        told = self.streamed_response(asked)
        self.assertEqual("".join(one["delta"] for one in told if one["type"] == "response.output_text.delta"), text)
        for fields, allowed in (({"guided_choice": ["yes", "no"]}, ("yes", "no")), ({"guided_regex": "a|b"}, ("a", "b")),
                                ({"grammar": 'root ::= "x" | "y"'}, ("x", "y")), ({"guided_json": {"const": 7}}, ("7",)),
                                ({"structured_outputs": {"choice": ["left"]}}, ("left",))):
            with self.subTest(fields):
                whole = self.complete_response(**fields)[1]
                self.assertIn(whole["output"][0]["content"][0]["text"], allowed)
        wrong = {"type": "object", "properties": {"a": {"format": "regex"}}}
        status, answer = self.server.post("/v1/responses", {"input": "x", "text": {"format": {
            "type": "json_schema", "name": "n", "schema": wrong}}})
        self.assertEqual(status, 400, answer)
        self.assertIn("#/properties/a/format", answer["error"]["message"])

    def test_one_form_of_the_answer_alone(self):
        schema = {"type": "object"}
        asked = {"/v1/chat/completions": {"messages": [{"role": "user", "content": "x"}]}, "/v1/completions": {"prompt": "x"},
                 "/v1/responses": {"input": "x"},
                 "/v1/messages": {"messages": [{"role": "user", "content": "x"}], "max_tokens": 1}}
        own = {"/v1/chat/completions": ("response_format", {"response_format": {"type": "json_object"}}),
               "/v1/completions": ("response_format", {"response_format": {"type": "json_object"}}),
               "/v1/responses": ("text.format", {"text": {"format": {"type": "json_schema", "name": "n", "schema": schema}}}),
               "/v1/messages": ("output_config.format",
                                {"output_config": {"format": {"type": "json_schema", "schema": schema}}})}
        extras = {"guided_json": schema, "json_schema": schema, "guided_regex": "a", "guided_grammar": 'root ::= "a"',
                  "grammar": 'root ::= "a"', "guided_choice": ["a"]}
        for path, body in asked.items():
            cases = [(own[path][0], name, own[path][1] | {name: extra}) for name, extra in extras.items()]
            cases += [(one, other, {one: extras[one], other: extras[other]})
                      for one, other in itertools.pairwise(extras)]
            cases.append(("guided_choice", "structured_outputs.regex",
                          {"guided_choice": ["a"], "structured_outputs": {"regex": "a"}}))
            cases.append(("structured_outputs.json", "structured_outputs.choice",
                          {"structured_outputs": {"choice": ["a"], "json": schema}}))
            for one, other, fields in cases:
                with self.subTest(path=path, fields=fields):
                    status, answer = self.server.post(path, body | fields)
                    self.assertEqual(status, 400, answer)
                    self.assertIn(f"'{one}' and '{other}'", answer["error"]["message"])

    def test_responses_with_tools(self):
        tool = {"type": "function", "name": "look", "strict": True, "parameters": {
            "type": "object", "properties": {"at": {"enum": ["moon", "sun"]}}, "required": ["at"],
            "additionalProperties": False}}
        for choice in ("required", {"type": "function", "name": "look"}):
            asked, whole = self.complete_response(tools=[tool], tool_choice=choice, parallel_tool_calls=False)
            call = whole["output"][-1]
            self.assertEqual((call["type"], call["name"]), ("function_call", "look"), whole)
            self.assertIn(json.loads(call["arguments"])["at"], ("moon", "sun"))
            told = self.streamed_response(asked)
            deltas = "".join(one["delta"] for one in told if one["type"] == "response.function_call_arguments.delta")
            self.assertEqual(deltas, call["arguments"])
        said = self.complete_response(tools=[tool], tool_choice="none", guided_choice=["yes"])[1]
        self.assertEqual(said["output"][0]["content"][0]["text"], "yes")

    def response(self, name, query="", method="GET"):
        return json.loads(self.server.request(method, f"/v1/responses/{name}{query}")[2])

    def wait_for_response(self, name):
        while (response := self.response(name))["status"] in ("queued", "in_progress"):
            pass
        return response

    def test_responses_in_the_background(self):
        asked = {"input": "Tell me a story.", "max_output_tokens": 30, "temperature": 0}
        whole = self.server.post("/v1/responses", asked)[1]
        text = whole["output"][0]["content"][0]["text"]
        status, first = self.server.post("/v1/responses", asked | {"background": True})
        self.assertEqual((status, first["status"], first["background"]), (200, "queued", True), first)
        done = self.wait_for_response(first["id"])
        self.assertEqual((done["status"], done["output"][0]["content"][0]["text"]), ("incomplete", text))
        self.assertEqual(done["usage"]["output_tokens"], 30)
        more = self.server.post("/v1/responses", asked | {"previous_response_id": first["id"], "input": "More."})[1]
        self.assertGreater(more["usage"]["input_tokens"], whole["usage"]["input_tokens"])
        status, answer = self.server.post("/v1/responses", asked | {"background": True, "store": False})
        self.assertEqual((status, answer["error"]["param"]), (400, "background"))
        self.assertEqual(self.server.request("GET", f"/v1/responses/{first['id']}?stream=true")[0], 400)

    def test_a_response_goes_on_without_its_client(self):
        asked = {"input": "Tell me a story.", "max_output_tokens": 400, "temperature": 0, "ignore_eos": True,
                 "background": True, "stream": True}
        body = json.dumps(asked).encode()
        with self.server.connect() as client:
            client.sendall(b"POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            text = b""
            while b"output_text.delta" not in text:
                text += client.recv(4096)
        seen = [json.loads(line) for line in events(text[:text.rindex(b"\n\n")])]
        self.assertEqual([one["type"] for one in seen[:3]], ["response.created", "response.queued", "response.in_progress"])
        name = seen[0]["response"]["id"]
        last = seen[-1]["sequence_number"]
        rest = self.server.request("GET", f"/v1/responses/{name}?stream=true&starting_after={last}")[2]
        everything = seen + [json.loads(line) for line in events(rest)]
        self.assertEqual([one["sequence_number"] for one in everything], list(range(len(everything))))
        said = "".join(one["delta"] for one in everything if one["type"] == "response.output_text.delta")
        self.assertEqual(everything[-1]["response"]["output"][0]["content"][0]["text"], said)
        self.assertEqual(everything[-1]["response"], self.response(name))
        again = self.server.request("GET", f"/v1/responses/{name}?stream=true")[2]
        self.assertEqual([json.loads(line) for line in events(again)], everything)
        self.assertEqual(self.server.request("GET", f"/v1/responses/{name}?stream=true&starting_after=x")[0], 400)

    def test_a_response_in_the_background_is_cancelled_or_deleted(self):
        asked = {"input": "Tell me a story.", "max_output_tokens": 1900, "ignore_eos": True, "background": True}
        first, second = (self.server.post("/v1/responses", asked)[1]["id"] for _ in range(2))
        self.assertEqual(self.response(first, "/cancel", "POST")["status"], "cancelled")
        self.assertEqual(self.response(first)["status"], "cancelled")  # at once, though its step may not be over
        self.assertEqual(self.wait_for_response(first)["status"], "cancelled")
        self.assertEqual(self.response(first, "/cancel", "POST")["status"], "cancelled")
        self.assertTrue(self.response(second, method="DELETE")["deleted"])
        self.assertEqual(self.server.request("GET", "/v1/responses/" + second)[0], 404)
        self.server.wait_for("sluice_requests_decoding", 0)
        self.assertEqual(self.server.request("GET", "/v1/responses/" + second)[0], 404)


if __name__ == "__main__":
    unittest.main()

"""Anthropic's protocol."""

import json
import unittest

from served import STORY, SharedServer, events


class Anthropic(SharedServer):
    ASKED = {"model": "m", "max_tokens": 8, "temperature": 0, "messages": STORY,
             "system": [{"type": "text", "text": "You tell stories."}]}

    def test_whole_equals_streamed(self):
        status, whole = self.server.post("/v1/messages", self.ASKED)
        self.assertEqual((status, whole["stop_reason"]), (200, "max_tokens"), whole)
        text = self.server.request("POST", "/v1/messages", self.ASKED | {"stream": True})[2]
        told = [json.loads(one) for one in events(text)]
        kinds = [one["type"] for one in told]
        self.assertEqual((kinds[0], kinds[1], kinds[-2], kinds[-1]),
                         ("message_start", "content_block_start", "message_delta", "message_stop"))
        said = "".join(one["delta"]["text"] for one in told if one["type"] == "content_block_delta")
        self.assertEqual(said, whole["content"][0]["text"])
        usage = whole["usage"]
        counted = self.server.post("/v1/messages/count_tokens", {k: self.ASKED[k] for k in ("messages", "system")})
        self.assertEqual(counted[1]["input_tokens"], usage["input_tokens"] + usage["cache_read_input_tokens"])

    def test_cache_control_marks_what_is_remembered(self):
        def ask(question, long="A dragon lived in a cave near the village and told stories to all who came. " * 12):
            mark = {"cache_control": {"type": "ephemeral"}}
            body = self.ASKED | {"system": [{"type": "text", "text": long} | mark],
                                 "messages": [{"role": "user", "content": question}]}
            status, answer = self.server.post("/v1/messages", body)
            self.assertEqual(status, 200, answer)
            usage = answer["usage"]
            counted = self.server.post("/v1/messages/count_tokens", {k: body[k] for k in ("messages", "system")})[1]
            self.assertEqual(counted["input_tokens"], usage["input_tokens"] + usage["cache_read_input_tokens"]
                             + usage["cache_creation_input_tokens"])
            return usage["cache_creation_input_tokens"], usage["cache_read_input_tokens"]

        created, read = ask("Who lived there?")
        self.assertGreaterEqual(created, 64)
        self.assertEqual((created % 64, read), (0, 0))
        self.assertEqual(ask("Where did it live?"), (0, created))

    def test_bad_cache_control_is_refused(self):
        for mark in ({"type": "forever"}, 7, "ephemeral"):
            status, answer = self.server.post("/v1/messages", self.ASKED | {"cache_control": mark})
            self.assertEqual((status, answer["error"]["type"]), (400, "invalid_request_error"))
        block = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}
        status, _ = self.server.post("/v1/messages", self.ASKED | {"system": [block] * 5})
        self.assertEqual(status, 400)

    def test_extras_of_local_servers(self):
        for fields, allowed in (({"guided_choice": ["yes", "no"]}, ("yes", "no")), ({"guided_regex": "a|b"}, ("a", "b")),
                                ({"grammar": 'root ::= "x" | "y"'}, ("x", "y")), ({"guided_json": {"const": 7}}, ("7",))):
            status, whole = self.server.post("/v1/messages", self.ASKED | fields)
            self.assertEqual(status, 200, whole)
            self.assertIn(whole["content"][0]["text"], allowed)

    def test_a_strict_tool_is_held_to_its_schema_or_refused(self):
        schema = {"type": "object", "properties": {"a": {"type": "string", "format": "regex"}}}
        tool = {"name": "look", "input_schema": schema}
        self.assertEqual(self.server.post("/v1/messages", self.ASKED | {"tools": [tool]})[0], 200)
        status, answer = self.server.post("/v1/messages", self.ASKED | {"tools": [tool | {"strict": True}]})
        self.assertEqual(status, 400, answer)
        self.assertIn("#/properties/a/format", answer["error"]["message"])

    def test_stop_sequence(self):
        _, whole = self.server.post("/v1/messages", self.ASKED | {"stop_sequences": [" time", "zzz"]})
        self.assertEqual((whole["stop_reason"], whole["stop_sequence"]), ("stop_sequence", " time"))

    def ask(self, **fields):
        status, whole = self.server.post("/v1/messages", self.ASKED | fields)
        self.assertEqual(status, 200, whole)
        return whole

    def count(self, messages):
        status, counted = self.server.post("/v1/messages/count_tokens", {"messages": messages})
        self.assertEqual(status, 200, counted)
        return counted["input_tokens"]

    def test_a_prompt_is_read_ahead(self):
        long = [{"role": "user", "content": "A dragon sat on the hill and sang to the moon. " * 20}]
        whole = self.ask(messages=long, max_tokens=0)
        self.assertEqual((whole["content"], whole["stop_reason"], whole["usage"]["output_tokens"]), ([], "max_tokens", 0))
        self.assertGreaterEqual(self.ask(messages=long)["usage"]["cache_read_input_tokens"], 64)
        text = self.server.request("POST", "/v1/messages", self.ASKED | {"max_tokens": 0, "stream": True})[2]
        self.assertEqual([json.loads(one)["type"] for one in events(text)], ["message_start", "message_delta", "message_stop"])

    def test_system_messages_among_the_others(self):
        told = self.count([STORY[0], {"role": "system", "content": [{"type": "text", "text": "Be short."}]}, STORY[0]])
        self.assertGreater(told, self.count([STORY[0], STORY[0]]) + 2)

    def test_documents_of_text(self):
        question = {"type": "text", "text": "What is blue?"}
        sources = ({"type": "text", "media_type": "text/plain", "data": "The sky is blue."},
                   {"type": "content", "content": [{"type": "text", "text": "The sky is blue."}]})
        counts = {self.count([{"role": "user", "content": [{"type": "document", "title": "Sky", "source": one}, question]}])
                  for one in sources}
        self.assertEqual(len(counts), 1)
        found = {"type": "search_result", "source": "sky.txt", "title": "Sky", "content": [{"type": "text", "text": "The sky is blue."}]}
        for content in ([found, question], [{"type": "tool_result", "tool_use_id": "t", "content": [found]}]):
            self.assertGreater(self.count([{"role": "user", "content": content}]), 15)
        for source in ({"type": "base64", "media_type": "application/pdf", "data": "eA=="}, {"type": "url", "url": "http://x/y.pdf"}, 7):
            block = {"type": "document", "source": source}
            status, answer = self.server.post("/v1/messages", self.ASKED | {"messages": [{"role": "user", "content": [block]}]})
            self.assertEqual((status, answer["error"]["type"]), (400, "invalid_request_error"))
            self.assertIn("messages.0.content.0.source", answer["error"]["message"])

    def test_messages_without_content(self):
        status, answer = self.server.post("/v1/messages", self.ASKED | {"messages": [{"role": "user", "content": []}]})
        self.assertEqual((status, answer["error"]["message"]), (400, "messages.0.content: user messages must have non-empty content"))
        empty = [{"role": "user", "content": [{"type": "text", "text": ""}]}]
        self.assertEqual(self.count(empty), self.count([{"role": "user", "content": ""}]))

    def test_usage_by_kind(self):
        usage = self.ask()["usage"]
        self.assertEqual(usage["output_tokens_details"], {"thinking_tokens": 0})
        self.assertEqual(sum(usage["cache_creation"].values()), usage["cache_creation_input_tokens"])

    def test_parameters_without_effect(self):
        self.ask(speed="standard", user_profile_id="x", diagnostics={}, inference_geo="eu", top_p=0, output_config={"effort": "low"})

    def test_the_context_is_the_limit(self):
        status, answer = self.server.post("/v1/messages", self.ASKED | {"messages": [{"role": "user", "content": "word " * 3000}]})
        self.assertEqual(status, 400)
        self.assertRegex(answer["error"]["message"], r"^prompt is too long: \d+ tokens > 2047 maximum$")
        near = [{"role": "user", "content": "word " * 2000}]
        self.assertLess(self.count(near), 2040)
        whole = self.ask(messages=near, max_tokens=1000, ignore_eos=True)
        self.assertEqual(whole["stop_reason"], "model_context_window_exceeded")

    def test_errors(self):
        # With these words, the official library continues without features that servers do not have.
        status, answer = self.server.post("/v1/messages", self.ASKED | {"thread": {"type": "create"}})
        self.assertEqual((status, answer["error"]["details"]), (400, {"error_code": "thread_unsupported_request"}))
        for method, path, code in (("GET", "/v1/messages/batches", 404), ("PATCH", "/v1/messages", 405)):
            status, _, body = self.server.request(method, path)
            self.assertEqual((status, json.loads(body)["type"]), (code, "error"))
        status, answer = self.server.post("/v1/messages", {"messages": STORY})
        self.assertEqual((status, answer["type"], answer["error"]["type"]), (400, "error", "invalid_request_error"))


if __name__ == "__main__":
    unittest.main()

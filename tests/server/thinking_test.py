"""Thinking in every protocol: limiting it, switching it by the template's variable, separating it from the answer, streaming.
The template takes one system message, as many do, while conversations begin with several."""

import json
import pathlib
import tempfile
import unittest

from served import STORY, Server, events

MODEL = pathlib.Path(__file__).parents[2] / "models" / "delta-story"
TEMPLATE = """{%- for message in messages %}
{%- if message.role == 'system' and not loop.first %}{{- raise_exception('The system message must come first.') }}{%- endif %}
{{- '<|im_start|>' + message.role + '\\n' }}
{%- if message.reasoning_content %}{{- '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' }}{%- endif %}
{{- message.content + '<|im_end|>\\n' }}{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n<think>\\n' }}
{%- if enable_thinking is defined and not enable_thinking %}{{- '\\n</think>\\n\\n' }}{%- endif %}{%- endif %}"""
WORDS = ["yes", "no"]
MOST = 5  # tokens of thinking
CLOSING = 16  # more than the closing tag and the answer take


class Thinking(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        for file in MODEL.iterdir():
            if file.name != "chat_template.jinja":
                (pathlib.Path(cls.folder.name) / file.name).symlink_to(file)
        (pathlib.Path(cls.folder.name) / "chat_template.jinja").write_text(TEMPLATE)
        cls.server = Server("--model", cls.folder.name, "--parallel", 2)

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()
        cls.folder.cleanup()

    def ask(self, path, fields):
        status, whole = self.server.post(path, {"temperature": 0, "guided_choice": WORDS} | fields)
        self.assertEqual(status, 200, whole)
        return whole

    def test_chat(self):
        asked = {"messages": STORY, "max_tokens": 60, "max_thinking_tokens": MOST}
        whole = self.ask("/v1/chat/completions", asked)
        message = whole["choices"][0]["message"]
        self.assertTrue(message["reasoning_content"])
        self.assertIn(message["content"], WORDS)
        self.assertLessEqual(whole["usage"]["completion_tokens"], MOST + CLOSING)
        _, _, text = self.server.request("POST", "/v1/chat/completions",
                                         {"temperature": 0, "guided_choice": WORDS, "stream": True} | asked)
        deltas = [json.loads(one)["choices"][0]["delta"] for one in events(text)[:-1]]
        for name in ("reasoning_content", "content"):
            self.assertEqual("".join(delta.get(name) or "" for delta in deltas), message[name])
        for off in ({"reasoning_effort": "none"}, {"chat_template_kwargs": {"enable_thinking": False}}):
            message = self.ask("/v1/chat/completions", asked | off)["choices"][0]["message"]
            self.assertFalse(message.get("reasoning_content"), message)
            self.assertIn(message["content"], WORDS)

    def test_messages(self):
        asked = {"messages": STORY, "max_tokens": 60}
        whole = self.ask("/v1/messages", asked | {"thinking": {"type": "enabled", "budget_tokens": MOST}})
        self.assertEqual([part["type"] for part in whole["content"]], ["thinking", "text"])
        self.assertTrue(whole["content"][0]["thinking"])
        self.assertIn(whole["content"][1]["text"], WORDS)
        self.assertLessEqual(whole["usage"]["output_tokens"], MOST + CLOSING)
        whole = self.ask("/v1/messages", asked | {"thinking": {"type": "disabled"}})
        self.assertEqual([part["type"] for part in whole["content"]], ["text"])
        self.assertIn(whole["content"][0]["text"], WORDS)

    def test_responses(self):
        asked = {"input": "Tell me a story.", "max_output_tokens": 60, "max_thinking_tokens": MOST}
        whole = self.ask("/v1/responses", asked)
        self.assertEqual([part["type"] for part in whole["output"]], ["reasoning", "message"])
        self.assertIn(whole["output"][1]["content"][0]["text"], WORDS)
        self.assertLessEqual(whole["usage"]["output_tokens"], MOST + CLOSING)
        self.assertGreater(whole["usage"]["output_tokens_details"]["reasoning_tokens"], 0)
        whole = self.ask("/v1/responses", asked | {"reasoning": {"effort": "none"}})
        self.assertEqual([part["type"] for part in whole["output"]], ["message"])
        self.assertIn(whole["output"][0]["content"][0]["text"], WORDS)

    def test_several_system_messages(self):
        system = [{"role": "system", "content": "You tell stories."}, {"role": "developer", "content": "Short ones."}]
        count = "/v1/chat/completions/input_tokens"
        status, one = self.server.post(count, {"messages": [system[0] | {"content": "You tell stories.\n\nShort ones."}] + STORY})
        self.assertEqual(status, 200, one)
        self.assertEqual(self.server.post(count, {"messages": system + STORY}), (200, one))
        agent = {"instructions": system[0]["content"], "input": system[1:] + STORY}
        self.assertEqual(self.server.post("/v1/responses/input_tokens", agent), (200, one))
        status, error = self.server.post(count, {"messages": STORY + system})
        self.assertEqual(status, 400)
        self.assertIn("The system message must come first.", error["error"]["message"])


if __name__ == "__main__":
    unittest.main()

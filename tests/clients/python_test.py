"""The official Python libraries, LiteLLM and LangChain against a running server: python_test.py URL"""

import json
import sys
import typing
import unittest

import anthropic
import litellm
import openai
from langchain_openai import ChatOpenAI

URL = sys.argv.pop(1)
STORY = [{"role": "user", "content": "Tell me a story about a dragon."}]
SHORT = {"model": "any", "messages": STORY, "max_tokens": 12}
LONGER = SHORT | {"max_tokens": 60}
GREEDY = SHORT | {"extra_body": {"temperature": 0}}


def complete(ask, ended):
    """A complete answer: a model this small may fill a form with blanks until the token limit."""
    return next(answer for answer in (ask(seed) for seed in range(20)) if ended(answer))


class OpenAI(unittest.TestCase):
    def setUp(self):
        self.client = openai.OpenAI(base_url=URL + "/v1", api_key="none", max_retries=0, timeout=60)
        self.addCleanup(self.client.close)

    def test_models(self):
        self.assertEqual([model.id for model in self.client.models.list()], ["delta-story"])
        self.assertEqual(self.client.models.retrieve("delta-story").id, "delta-story")

    def test_chat_streamed_and_whole(self):
        whole = self.client.chat.completions.create(**SHORT, temperature=0)
        self.assertEqual(whole.choices[0].finish_reason, "length")
        self.assertEqual(whole.usage.completion_tokens, 12)
        self.assertIsNotNone(whole.usage.prompt_tokens_details.cached_tokens)
        stream = self.client.chat.completions.create(**SHORT, temperature=0, stream=True, stream_options={"include_usage": True})
        chunks = list(stream)
        self.assertEqual("".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices),
                         whole.choices[0].message.content)
        self.assertEqual(chunks[-1].usage.completion_tokens, 12)

    def test_choices_seeds_and_stops(self):
        asked = SHORT | {"n": 3, "seed": 11, "temperature": 1}
        first, second = (self.client.chat.completions.create(**asked) for _ in range(2))
        texts = [choice.message.content for choice in first.choices]
        self.assertEqual(texts, [choice.message.content for choice in second.choices])
        self.assertGreater(len(set(texts)), 1)
        stopped = self.client.chat.completions.create(**SHORT, temperature=0, stop=" time")
        self.assertEqual(stopped.choices[0].finish_reason, "stop")
        self.assertNotIn(" time", stopped.choices[0].message.content)

    def test_logprobs(self):
        choice = self.client.chat.completions.create(**SHORT, logprobs=True, top_logprobs=2).choices[0]
        self.assertEqual(len(choice.logprobs.content), 12)
        self.assertEqual(len(choice.logprobs.content[0].top_logprobs), 2)
        old = self.client.completions.create(model="any", prompt="Once upon", max_tokens=4, logprobs=2).choices[0]
        self.assertEqual(len(old.logprobs.tokens), 4)

    def test_schema_and_tools(self):
        schema = {"type": "object", "properties": {"name": {"enum": ["Tim", "Lily"]}}, "required": ["name"],
                  "additionalProperties": False}
        form = {"type": "json_schema", "json_schema": {"name": "hero", "schema": schema, "strict": True}}
        answer = complete(lambda seed: self.client.chat.completions.create(**LONGER, seed=seed, response_format=form),
                          lambda answer: answer.choices[0].finish_reason == "stop")
        self.assertIn(json.loads(answer.choices[0].message.content)["name"], ("Tim", "Lily"))
        tool = {"type": "function", "function": {"name": "meet", "parameters": schema}}
        answer = complete(lambda seed: self.client.chat.completions.create(**LONGER, seed=seed, tools=[tool], tool_choice="required"),
                          lambda answer: answer.choices[0].finish_reason != "length")
        call = answer.choices[0].message.tool_calls[0]
        self.assertEqual((call.function.name, answer.choices[0].finish_reason), ("meet", "tool_calls"))
        history = STORY + [answer.choices[0].message.model_dump(exclude_none=True),
                           {"role": "tool", "tool_call_id": call.id, "content": "Hello!"}]
        self.assertTrue(self.client.chat.completions.create(**SHORT | {"messages": history}).choices)

    def test_errors(self):
        with self.assertRaises(openai.BadRequestError) as raised:
            self.client.chat.completions.create(**SHORT | {"messages": [{"role": "user", "content": "word " * 5000}]})
        self.assertEqual(raised.exception.code, "context_length_exceeded")
        self.assertTrue(raised.exception.request_id)
        with self.assertRaises(openai.BadRequestError):
            self.client.chat.completions.create(**SHORT, temperature=9)
        with self.assertRaises(openai.NotFoundError):
            self.client.models.retrieve("other")

    def test_cancelling_and_time_outs(self):
        with self.client.chat.completions.create(**SHORT | {"max_tokens": 1900}, stream=True) as stream:
            next(iter(stream))
        with self.assertRaises(openai.APITimeoutError):
            self.client.with_options(timeout=0.05).chat.completions.create(
                **SHORT | {"max_tokens": 1900}, extra_body={"ignore_eos": True})
        self.assertTrue(self.client.chat.completions.create(**SHORT).choices)

    def test_responses(self):
        first = self.client.responses.create(model="any", input="Tell me a story.", max_output_tokens=12)
        self.assertTrue(first.output_text)
        self.assertEqual(self.client.responses.retrieve(first.id).output_text, first.output_text)
        with self.client.responses.stream(model="any", input="More.", previous_response_id=first.id,
                                          extra_body={"stop": ["a", "e", "."]}) as stream:
            said = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
            self.assertEqual(stream.get_final_response().output_text, said)
        self.client.responses.delete(first.id)
        with self.assertRaises(openai.NotFoundError):
            self.client.responses.retrieve(first.id)

    def test_counting_tokens(self):
        asked = {"model": "any", "input": "Tell me a story."}
        count = self.client.responses.input_tokens.count(**asked).input_tokens
        self.assertEqual(count, self.client.responses.create(**asked, max_output_tokens=1).usage.input_tokens)

    def test_responses_in_the_background(self):
        asked = {"model": "any", "input": "Tell me a story.", "max_output_tokens": 200, "background": True,
                 "extra_body": {"ignore_eos": True}}
        queued = self.client.responses.create(**asked)
        self.assertEqual(queued.status, "queued")
        self.assertEqual(self.client.responses.cancel(queued.id).status, "cancelled")
        stream = self.client.responses.create(**asked, stream=True)
        seen = [next(stream) for _ in range(8)]
        stream.close()  # and comes back for the rest
        seen += self.client.responses.retrieve(seen[0].response.id, stream=True, starting_after=seen[-1].sequence_number)
        self.assertEqual([event.sequence_number for event in seen], list(range(len(seen))))
        said = "".join(event.delta for event in seen if event.type == "response.output_text.delta")
        self.assertEqual(self.client.responses.retrieve(seen[0].response.id).output_text, said)


class Anthropic(unittest.TestCase):
    def setUp(self):
        self.client = anthropic.Anthropic(base_url=URL, api_key="none", max_retries=0, timeout=60)
        self.addCleanup(self.client.close)

    def test_messages(self):
        whole = self.client.messages.create(**GREEDY)
        self.assertEqual((whole.stop_reason, whole.usage.output_tokens), ("max_tokens", 12))
        with self.client.messages.stream(**GREEDY) as stream:
            said = "".join(stream.text_stream)
            self.assertEqual(stream.get_final_message().content[0].text, said)
        self.assertEqual(said, whole.content[0].text)
        stopped = self.client.messages.create(**GREEDY, stop_sequences=[" time"])
        self.assertEqual((stopped.stop_reason, stopped.stop_sequence), ("stop_sequence", " time"))

    def test_counting(self):
        counted = self.client.messages.count_tokens(model="any", messages=STORY)
        usage = self.client.messages.create(**SHORT).usage
        self.assertEqual(counted.input_tokens, usage.input_tokens + usage.cache_read_input_tokens)

    def test_tools(self):
        tool = {"name": "look", "input_schema": {"type": "object", "properties": {"at": {"enum": ["moon", "sun"]}},
                                                 "required": ["at"], "additionalProperties": False}}
        answer = complete(lambda seed: self.client.messages.create(**LONGER, extra_body={"seed": seed}, tools=[tool],
                                                                   tool_choice={"type": "any"}),
                          lambda answer: answer.stop_reason != "max_tokens")
        self.assertEqual((answer.stop_reason, answer.content[0].name), ("tool_use", "look"))
        history = STORY + [{"role": "assistant", "content": answer.content},
                           {"role": "user", "content": [{"type": "tool_result", "tool_use_id": answer.content[0].id,
                                                         "content": "It shines."}]}]
        self.assertTrue(self.client.messages.create(**SHORT | {"messages": history}).content)

    def test_tool_runner(self):
        @anthropic.beta_tool
        def look(at: typing.Literal["moon", "sun"]) -> str:
            """Looks at something."""
            return f"The {at} shines."

        runner = self.client.beta.messages.tool_runner(**SHORT, tools=[look], max_iterations=2)
        self.assertTrue(runner.until_done().content)

    def test_errors(self):
        with self.assertRaises(anthropic.BadRequestError) as raised:
            self.client.messages.create(**SHORT | {"messages": [{"role": "user", "content": "word " * 5000}]})
        self.assertEqual(raised.exception.body["error"]["type"], "invalid_request_error")
        with self.assertRaises(anthropic.APITimeoutError):
            self.client.with_options(timeout=0.05).messages.create(**SHORT | {"max_tokens": 1900},
                                                                   extra_body={"ignore_eos": True})


class Others(unittest.TestCase):
    def test_litellm(self):
        answer = litellm.completion(model="openai/any", api_base=URL + "/v1", api_key="none", messages=STORY, max_tokens=12)
        self.assertTrue(answer.choices[0].message.content)
        chunks = litellm.completion(model="openai/any", api_base=URL + "/v1", api_key="none", messages=STORY, max_tokens=12,
                                    stream=True)
        self.assertTrue("".join(chunk.choices[0].delta.content or "" for chunk in chunks))
        answer = litellm.completion(model="anthropic/any", api_base=URL, api_key="none", messages=STORY, max_tokens=12)
        self.assertTrue(answer.choices[0].message.content)

    def test_langchain(self):
        chat = ChatOpenAI(base_url=URL + "/v1", api_key="none", model="any", max_tokens=12, temperature=0)
        whole = chat.invoke("Tell me a story.")
        self.assertEqual("".join(part.content for part in chat.stream("Tell me a story.")), whole.content)
        self.assertEqual(whole.usage_metadata["output_tokens"], 12)


if __name__ == "__main__":
    unittest.main()

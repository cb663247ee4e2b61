// The official JavaScript libraries against a running server: SLUICE_URL=URL node --test javascript_test.mjs
import assert from 'node:assert/strict';
import test from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';

const url = process.env.SLUICE_URL;
const messages = [{role: 'user', content: 'Tell me a story about a dragon.'}];
const short = {model: 'any', messages, max_tokens: 12, temperature: 0};
const openai = new OpenAI({baseURL: url + '/v1', apiKey: 'none', maxRetries: 0});
const anthropic = new Anthropic({baseURL: url, apiKey: 'none', maxRetries: 0});

test('openai: chat, streamed and whole', async () => {
  const whole = await openai.chat.completions.create(short);
  assert.equal(whole.usage.completion_tokens, 12);
  let said = '';
  for await (const chunk of await openai.chat.completions.create({...short, stream: true}))
    said += chunk.choices[0]?.delta?.content ?? '';
  assert.equal(said, whole.choices[0].message.content);
});

test('openai: choices, logprobs, stop and seed', async () => {
  const asked = {...short, n: 2, seed: 5, temperature: 1, logprobs: true, top_logprobs: 2, stop: ['zzz']};
  const [one, two] = [await openai.chat.completions.create(asked), await openai.chat.completions.create(asked)];
  assert.deepEqual(one.choices.map((choice) => choice.message.content), two.choices.map((choice) => choice.message.content));
  assert.equal(one.choices[0].logprobs.content[0].top_logprobs.length, 2);
});

test('openai: errors, cancelling and time-outs', async () => {
  await assert.rejects(openai.chat.completions.create({...short, temperature: 9}), (error) => error.status === 400);
  const stream = await openai.chat.completions.create({...short, max_tokens: 1900, stream: true});
  for await (const _ of stream) { stream.controller.abort(); break; }
  await assert.rejects(openai.chat.completions.create({...short, max_tokens: 1900, ignore_eos: true}, {timeout: 50}),
                       OpenAI.APIConnectionTimeoutError);
});

test('openai: responses', async () => {
  const stream = await openai.responses.create({model: 'any', input: 'Tell me a story.', max_output_tokens: 12, stream: true});
  let said = '', last;
  for await (const event of stream) {
    if (event.type === 'response.output_text.delta') said += event.delta;
    last = event;
  }
  assert.equal(last.response.output[0].content[0].text, said);
});

test('anthropic: messages, streamed and whole, and counting', async () => {
  const whole = await anthropic.messages.create(short);
  const stream = anthropic.messages.stream(short);
  const final = await stream.finalMessage();
  assert.equal(final.content[0].text, whole.content[0].text);
  const counted = await anthropic.messages.countTokens({model: 'any', messages});
  assert.equal(counted.input_tokens, whole.usage.input_tokens + whole.usage.cache_read_input_tokens);
  const ahead = await anthropic.messages.create({...short, max_tokens: 0});
  assert.deepEqual([ahead.content, ahead.usage.output_tokens], [[], 0]);
  await assert.rejects(anthropic.messages.create({...short, max_tokens: -1}), (error) => error.status === 400);
});

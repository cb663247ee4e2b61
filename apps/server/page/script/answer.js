// Answers in progress. One conversation has at most one; several conversations may have one each.

const running = new Map();  // by the conversation's id

// Requests an answer to `parent` and adds it as a new child.
function answerTo(conversation, parent) {
  const message = addMessage(conversation, parent.id, {role: 'assistant', finish: 'running'});
  return write(conversation, message, requestMessages(conversation, parent));
}

// Continues a finished answer.
function continueAnswer(conversation, message) {
  delete message.error;
  return write(conversation, message, requestMessages(conversation, message));
}

async function write(conversation, message, messages) {
  const run = {conversation, message, control: new AbortController(), began: performance.now(), first: 0, last: 0, tokens: 0};
  running.set(conversation.id, run);
  message.finish = 'running';
  showThread();
  save(conversation);
  const saving = setInterval(() => save(conversation), 3000);
  const counting = setInterval(showStatus, 1000);
  try {
    await stream(run, {messages, ...settingFields()});
    message.finish = run.finish || 'stop';
  } catch (error) {
    message.finish = error.name === 'AbortError' ? 'stopped' : 'failed';
    if (message.finish === 'failed') message.error = error.message;
  }
  clearInterval(saving);
  clearInterval(counting);
  if (run.tokens || run.usage) message.stats = statsOf(run);
  running.delete(conversation.id);
  conversation.updated = Date.now();
  if (conversation === current) showThread();
  await save(conversation);
}

async function stream(run, fields) {
  const body = {model: server.model, stream: true, stream_options: {include_usage: true}, ...fields};
  const response = await ask('/v1/chat/completions', {method: 'POST', body, signal: run.control.signal});
  await readAnswer(response, {
    progress: (read, all) => {
      run.read = read;
      run.all = all;
      showRun(run);
    },
    chunk: (chunk) => {
      takeChunk(run, chunk);
      showRun(run);
    },
  });
}

function takeChunk(run, chunk) {
  const {message} = run;
  if (chunk.usage) run.usage = chunk.usage;
  if (typeof chunk.model === 'string') message.model = chunk.model;
  const choice = chunk.choices && chunk.choices[0];
  if (!choice) return;
  if (choice.finish_reason) run.finish = choice.finish_reason;
  const delta = choice.delta || {};
  const thinking = textOr(delta.reasoning_content, '') || textOr(delta.reasoning, '');
  const text = textOr(delta.content, '');
  message.reasoning = (message.reasoning || '') + thinking;
  message.content += text;
  for (const call of delta.tool_calls || []) takeCall(message, call);
  if (thinking || text || delta.tool_calls) countToken(run);
}

// Calls arrive in pieces: the name first, then the arguments.
function takeCall(message, {index = 0, id, function: called = {}}) {
  message.calls = message.calls || [];
  if (!Number.isInteger(index) || index < 0 || index > 1000) return;
  while (message.calls.length <= index) message.calls.push({id: '', name: '', arguments: ''});
  const call = message.calls[index];
  call.id = textOr(id, call.id);
  call.name += textOr(called.name, '');
  call.arguments += textOr(called.arguments, '');
}

function countToken(run) {
  run.last = performance.now();
  run.first = run.first || run.last;
  run.tokens++;
}

// The cost of an answer. The server's token count, once known, is more exact than the number of chunks.
function statsOf(run) {
  const usage = run.usage || {};
  const tokens = usage.completion_tokens || run.tokens;
  const stats = {tokens};
  if (run.first) stats.firstToken = (run.first - run.began) / 1000;
  if (run.last > run.first && tokens > 1) stats.perSecond = (tokens - 1) / ((run.last - run.first) / 1000);
  if (usage.prompt_tokens) {
    stats.prompt = usage.prompt_tokens;
    stats.cached = (usage.prompt_tokens_details || {}).cached_tokens || 0;
  }
  return stats;
}

function statsText(stats) {
  const parts = [`${stats.tokens} ${stats.tokens === 1 ? 'token' : 'tokens'}`];
  if (stats.perSecond) parts.push(`${stats.perSecond.toFixed(1)} tok/s`);
  if (stats.firstToken) parts.push(`first token ${stats.firstToken.toFixed(2)} s`);
  if (stats.cached) parts.push(`${stats.cached} of ${stats.prompt} prompt tokens cached`);
  if (stats.prompt) parts.push(contextText(stats.prompt + stats.tokens));
  // Lines break after a figure and its dot, never inside a figure.
  return parts.map((part) => part.replaceAll(' ', '\u00a0')).join('\u00a0· ');
}

function contextText(used) {
  return server.context ? `context ${used} of ${server.context}` : `context ${used}`;
}

function runText(run) {
  if (run.tokens) return statsText(statsOf(run));
  const seconds = ((performance.now() - run.began) / 1000).toFixed(0);
  if (run.all) return `reading the prompt, ${run.read} of ${run.all} tokens`;
  return seconds > 1 ? `waiting for ${seconds} s` : 'waiting';
}

function stopAnswer() {
  const run = running.get(current.id);
  if (run) run.control.abort();
}

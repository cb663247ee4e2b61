// The server's protocol: requests with the key, errors as one sentence, streamed answers.

class ServerError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

let apiKey = remembered.get('key');

// Sends a request; asks the user for the key as often as the server rejects the current one.
async function ask(path, {method = 'GET', body, signal} = {}) {
  for (let refused = false;; refused = true) {
    const response = await send(path, {method, body, signal});
    if (response.status !== 401) {
      if (!response.ok) throw await errorOf(response);
      return response;
    }
    if (!(await askForKey(refused || apiKey !== ''))) throw new ServerError('The server requires an API key.', 401);
  }
}

async function send(path, {method, body, signal}) {
  const headers = {};
  if (apiKey) headers.Authorization = 'Bearer ' + apiKey;
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  try {
    return await fetch(path, {method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body)});
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ServerError('The server cannot be reached.', 0);
  }
}

async function errorOf(response) {
  const text = await response.text();
  let message = '';
  try { message = JSON.parse(text).error.message; } catch { message = ''; }
  const wait = response.headers.get('Retry-After');
  const again = wait ? ` Try again in ${wait} s.` : '';
  return new ServerError((textOr(message, '') || `The server answered ${response.status}.`) + again, response.status);
}

let keyQuestion = null;  // the answer to come, shared by all requests that wait for it

function askForKey(refused) {
  keyQuestion = keyQuestion || new Promise((resolve) => {
    const dialog = byId('key-dialog');
    byId('key').value = '';
    byId('key-note').textContent = refused ? 'The server did not accept this key.' :
      'The server requires an API key. It is stored in this browser.';
    dialog.returnValue = '';
    dialog.onclose = () => {
      keyQuestion = null;
      if (dialog.returnValue === 'ok') {
        apiKey = byId('key').value.trim();
        remembered.set('key', apiKey);
      }
      resolve(dialog.returnValue === 'ok');
    };
    dialog.showModal();
  });
  return keyQuestion;
}

// The lines of a body as they arrive.
async function* linesOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const {value, done} = await reader.read();
    if (done) break;
    const lines = (rest + value).split('\n');
    rest = lines.pop();
    for (const line of lines) yield line.endsWith('\r') ? line.slice(0, -1) : line;
  }
  if (rest) yield rest;
}

// Reads the server-sent events of one answer: calls `progress` with the progress of the prompt, and `chunk` with every
// chunk. Throws if the stream ends before the answer does.
async function readAnswer(response, {progress, chunk}) {
  try {
    for await (const line of linesOf(response)) {
      const read = /^: prefill (\d+)\/(\d+)/.exec(line);
      if (read) progress(Number(read[1]), Number(read[2]));
      if (!line.startsWith('data:')) continue;
      const data = line.slice(5).trim();
      if (data === '[DONE]') return;
      const event = JSON.parse(data);
      if (event.error) throw new ServerError(textOr(event.error.message, 'The server failed.'), 500);
      chunk(event);
    }
  } catch (error) {
    if (error.name === 'AbortError' || error instanceof ServerError) throw error;
    throw new ServerError('The connection was lost before the answer was complete.', 0);
  }
  throw new ServerError('The answer ended before it was complete.', 0);
}

// A conversation: a tree of messages. Editing or answering again adds a sibling; `picked` names, for each parent, the
// child that is shown. The root has the id ''.

function newConversation(system = '') {
  return {id: newId(), title: '', system, created: Date.now(), updated: Date.now(), messages: {}, picked: {}};
}

function childrenOf(conversation, id) {
  return Object.values(conversation.messages).filter((message) => message.parent === id);
}

function addMessage(conversation, parent, fields) {
  const message = {id: newId(), parent, role: 'user', content: '', ...fields};
  conversation.messages[message.id] = message;
  conversation.picked[parent] = message.id;
  conversation.updated = Date.now();
  if (!conversation.title && message.role === 'user') conversation.title = titleFrom(message.content);
  return message;
}

function titleFrom(text) {
  const line = text.trim().split('\n')[0];
  return line.length > 60 ? line.slice(0, 59) + '…' : line;
}

// The shown messages, from the first to the last.
function shownMessages(conversation) {
  const path = [];
  let message = conversation.messages[conversation.picked['']];
  while (message && path.length < 100000) {
    path.push(message);
    message = conversation.messages[conversation.picked[message.id]];
  }
  return path;
}

function lastShown(conversation) {
  const path = shownMessages(conversation);
  return path[path.length - 1];
}

// Shows the sibling `step` positions further.
function pickSibling(conversation, message, step) {
  const siblings = childrenOf(conversation, message.parent);
  const at = siblings.indexOf(message) + step;
  if (siblings[at]) conversation.picked[message.parent] = siblings[at].id;
}

// The messages of a request: everything from the first message to this one, without answers that stayed empty.
function requestMessages(conversation, last) {
  const path = [];
  for (let message = last; message; message = conversation.messages[message.parent]) {
    if (message.role !== 'assistant' || message.content || message.calls) path.unshift(message);
  }
  const asked = path.map(requestMessage);
  return conversation.system.trim() ? [{role: 'system', content: conversation.system}, ...asked] : asked;
}

function requestMessage(message) {
  const made = {role: message.role, content: message.content};
  if (message.reasoning) made.reasoning_content = message.reasoning;
  if (message.calls && message.calls.length) {
    made.tool_calls = message.calls.map((call) => (
      {id: call.id, type: 'function', function: {name: call.name, arguments: call.arguments}}));
  }
  if (message.role === 'tool') made.tool_call_id = message.call;
  return made;
}

const textOr = (value, otherwise) => (typeof value === 'string' ? value : otherwise);
const isId = (value) => typeof value === 'string' && /^[A-Za-z0-9][\w-]{0,63}$/.test(value);

// A conversation from an untrusted file or disk: parts with an unexpected form are left out.
function checkedConversation(data) {
  if (!data || typeof data !== 'object' || typeof data.messages !== 'object' || !data.messages || !isId(data.id)) return null;
  const made = {...newConversation(textOr(data.system, '')), id: data.id, title: textOr(data.title, '')};
  made.created = Number(data.created) || made.created;
  made.updated = Number(data.updated) || made.updated;
  for (const message of Object.values(data.messages)) {
    const checked = checkedMessage(message);
    if (checked) made.messages[checked.id] = checked;
  }
  for (const message of Object.values(made.messages)) {
    const parent = message.parent;
    const picked = data.picked && made.messages[data.picked[parent]];
    made.picked[parent] = picked && picked.parent === parent ? picked.id : message.id;
  }
  return made;
}

function checkedMessage(message) {
  if (!message || !isId(message.id) || !(message.parent === '' || isId(message.parent))) return null;
  if (!['user', 'assistant', 'tool'].includes(message.role)) return null;
  const made = {id: message.id, parent: message.parent, role: message.role, content: textOr(message.content, '')};
  for (const name of ['reasoning', 'finish', 'error', 'model', 'call']) {
    if (typeof message[name] === 'string') made[name] = message[name];
  }
  if (Array.isArray(message.calls)) {
    made.calls = message.calls.map((call) => (
      {id: textOr(call && call.id, ''), name: textOr(call && call.name, ''), arguments: textOr(call && call.arguments, '')}));
  }
  if (message.stats && typeof message.stats === 'object') made.stats = numbersOf(message.stats);
  return made;
}

function numbersOf(data) {
  return Object.fromEntries(Object.entries(data).filter(([, value]) => typeof value === 'number'));
}

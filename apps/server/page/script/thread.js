// The messages on the screen.

const articles = new Map();  // of the shown messages, by id

function showThread() {
  const thread = byId('thread');
  const path = shownMessages(current);
  articles.clear();
  const made = path.map((message) => {
    const article = buildArticle(message, message === path[path.length - 1]);
    articles.set(message.id, article);
    return article;
  });
  const atEnd = isAtEnd();
  thread.replaceChildren(...(made.length ? made : [buildWelcome()]));
  byId('title').textContent = current.title || 'New conversation';
  document.title = current.title ? `${current.title} – sluice` : 'sluice';
  showStatus();
  if (atEnd) scrollToEnd();
  showSide();
}

function buildWelcome() {
  return element('div', {className: 'welcome'},
      element('p', {className: 'brand'}, 'sluice'),
      element('p', {className: 'faint'}, server.model ? `${server.model} is ready.` : 'Write a message to begin.'));
}

function buildArticle(message, isLast) {
  const names = {user: 'You', assistant: 'Answer', tool: 'Result of a tool'};
  const article = element('article', {className: message.role, 'aria-label': names[message.role]});
  article.dataset.id = message.id;
  const body = element('div', {className: 'body'});
  article.append(body);
  if (message.role === 'assistant') {
    article.isLast = isLast;
    fillAnswer(article, message);
  } else {
    body.append(message.content);
  }
  if (!isRunning(message)) article.append(buildActions(message, isLast));
  return article;
}

const isRunning = (message) => (running.get(current.id) || {}).message === message;

// Updates the article of an answer whenever something arrived.
function fillAnswer(article, message) {
  const body = article.querySelector('.body');
  article.setAttribute('aria-busy', isRunning(message));
  fillThinking(body, message);
  let text = body.querySelector('.markdown');
  if (!text) body.append(text = element('div', {className: 'markdown'}));
  showMarkdown(text, message.content);
  fillCalls(body, message);
  text.classList.toggle('writing', isRunning(message));
  if (message.error && !body.querySelector('.error')) body.append(element('p', {className: 'error', role: 'alert'}, message.error));
}

function fillThinking(body, message) {
  if (!message.reasoning) return;
  let thinking = body.querySelector('.thinking');
  if (!thinking) {
    thinking = element('details', {className: 'thinking'}, element('summary'), element('div'));
    body.prepend(thinking);
  }
  const isThinking = isRunning(message) && !message.content && !(message.calls && message.calls.length);
  thinking.querySelector('summary').textContent = isThinking ? 'Thinking…' : 'Thoughts';
  showMarkdown(thinking.querySelector('div'), message.reasoning);
}

function fillCalls(body, message) {
  for (const old of body.querySelectorAll('.call')) old.remove();
  for (const call of message.calls || []) {
    body.append(element('details', {className: 'call', open: true},
        element('summary', {}, 'Calls ', element('code', {}, call.name)), element('pre', {tabIndex: 0}, prettyJson(call.arguments))));
  }
}

function prettyJson(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function buildActions(message, isLast) {
  const actions = element('div', {className: 'actions'}, buildBranches(message));
  if (message.content) actions.append(copyButton(() => message.content));
  actions.append(button('Edit', 'Edit in a new branch', () => beginEdit(message), 'small'));
  if (message.role === 'assistant') {
    actions.append(button('Again', 'Answer again in a new branch', () => regenerate(message), 'small'));
    const hasCalls = message.calls && message.calls.length;
    if (isLast && !hasCalls) actions.append(button('Continue', 'Continue this answer', () => goOn(message), 'small'));
    if (isLast && hasCalls) actions.append(button('Result', 'Give the results of the calls', () => beginResult(message), 'small'));
    if (message.finish === 'length') actions.append(element('span', {className: 'faint'}, 'cut at the longest answer'));
    if (message.finish === 'stopped') actions.append(element('span', {className: 'faint'}, 'stopped'));
    if (message.stats && !isLast) actions.append(element('span', {className: 'faint stats'}, statsText(message.stats)));
  }
  return actions;
}

function buildBranches(message) {
  const siblings = childrenOf(current, message.parent);
  if (siblings.length < 2) return null;
  const at = siblings.indexOf(message);
  const step = (by) => () => {
    pickSibling(current, message, by);
    showThread();
    save(current);
  };
  const back = button('‹', 'Previous branch', step(-1), 'small');
  const next = button('›', 'Next branch', step(1), 'small');
  back.disabled = at === 0;
  next.disabled = at === siblings.length - 1;
  return element('span', {className: 'branches'}, back, `${at + 1}/${siblings.length}`, next);
}

// Turns a message into a text field. Saving adds a sibling: an edited question is answered, an edited answer stays as
// written.
function beginEdit(message) {
  const field = {label: 'Text of the message', text: message.content};
  openEditor(message, [field], message.role === 'user' ? 'Send' : 'Save', ([text]) => {
    const {role, reasoning} = message;
    const made = addMessage(current, message.parent, {role, content: text, ...(reasoning ? {reasoning} : {})});
    if (role === 'user') return answerTo(current, made);
    showThread();
    return save(current);
  });
}

// The results of an answer's calls, entered by hand: one message per call.
function beginResult(message) {
  const fields = message.calls.map((call) => ({label: `Result of ${call.name}`, text: ''}));
  openEditor(message, fields, 'Send', (texts) => {
    let last = message;
    message.calls.forEach((call, at) => { last = addMessage(current, last.id, {role: 'tool', content: texts[at], call: call.id}); });
    return answerTo(current, last);
  }, true);
}

function openEditor(message, fields, verb, done, below = false) {
  if (running.has(current.id)) return;
  const article = articles.get(message.id);
  if (article.querySelector('.editor')) return;
  const areas = fields.map(({label, text}) => element('textarea', {value: text, rows: Math.min(12, text.split('\n').length + 1),
                                                                   placeholder: below ? label : '', 'aria-label': label}));
  const finish = () => {
    const missing = areas.find((area) => !area.value.trim());
    if (missing) missing.focus();
    else done(areas.map((area) => area.value));
  };
  const editor = element('div', {className: 'editor'}, ...areas, element('div', {className: 'actions'},
      button(verb, `${verb} (Ctrl+Enter)`, finish, 'small primary'), button('Cancel', 'Cancel (Esc)', showThread, 'small')));
  editor.onkeydown = (event) => {
    if (event.key === 'Escape') showThread();
    else if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) finish();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  article.classList.add('editing');
  if (below) article.append(editor);
  else article.replaceChildren(editor);
  editor.scrollIntoView({block: 'nearest'});
  areas[0].focus();
}

// Redraws what an answer in progress changed, at most once per frame.
let frame = 0;

function showRun(run) {
  if (frame) return;
  frame = requestAnimationFrame(() => {
    frame = 0;
    const article = articles.get(run.message.id);
    if (!isRunning(run.message) || !article) return;
    const atEnd = isAtEnd();
    fillAnswer(article, run.message);
    showStatus();
    if (atEnd) scrollToEnd();
  });
}

function showStatus() {
  const run = running.get(current.id);
  const last = lastShown(current);
  byId('send').hidden = Boolean(run);
  byId('stop').hidden = !run;
  byId('status').textContent = run ? runText(run) : (last && last.stats ? statsText(last.stats) : '');
}

const isAtEnd = () => {
  const scroll = byId('scroll');
  return scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 60;
};

function scrollToEnd() {
  byId('scroll').scrollTop = byId('scroll').scrollHeight;
}

// Event handlers, and the start of the page.

const server = {model: '', context: 0};
let store = openMemoryStore();
let current = newConversation();

function sendMessage() {
  const text = byId('message').value;
  if (!text.trim() || running.has(current.id)) return;
  byId('message').value = '';
  fitMessage();
  notice('');
  const last = lastShown(current);
  const message = addMessage(current, last ? last.id : '', {role: 'user', content: text});
  answerTo(current, message);
  scrollToEnd();
}

function regenerate(message) {
  if (!running.has(current.id)) answerTo(current, current.messages[message.parent]);
}

function goOn(message) {
  if (!running.has(current.id)) continueAnswer(current, message);
}

function fitMessage() {
  const area = byId('message');
  area.style.height = 'auto';
  area.style.height = `${Math.min(area.scrollHeight, innerHeight * 0.4)}px`;
}

function setUpComposer() {
  byId('composer').onsubmit = (event) => {
    event.preventDefault();
    sendMessage();
  };
  byId('stop').onclick = stopAnswer;
  byId('message').oninput = fitMessage;
  byId('message').onkeydown = (event) => {
    if (event.isComposing) return;  // Enter chooses a word there
    if (event.key === 'Enter' && !event.shiftKey) {
      event.preventDefault();
      sendMessage();
    } else if (event.key === 'ArrowUp' && !byId('message').value) {
      const asked = shownMessages(current).filter((message) => message.role === 'user');
      if (asked.length) beginEdit(asked[asked.length - 1]);
      event.preventDefault();
    }
  };
  byId('scroll').onscroll = () => { byId('to-end').hidden = isAtEnd(); };
  byId('to-end').onclick = scrollToEnd;
}

function setUpDialogs() {
  byId('open-settings').onclick = () => byId('settings').showModal();
  byId('system').oninput = () => {
    current.system = byId('system').value;
    save(current);
  };
  byId('change-key').onclick = () => askForKey(false);
  byId('key-cancel').onclick = () => byId('key-dialog').close('');
}

function setUpKeys() {
  document.addEventListener('keydown', (event) => {
    const typing = /^(TEXTAREA|INPUT|SELECT)$/.test(document.activeElement.tagName);
    const control = event.ctrlKey || event.metaKey;
    if (document.querySelector('dialog[open]')) return;
    if (event.key === 'Escape') stopAnswer();
    else if (control && event.shiftKey && event.key.toLowerCase() === 'o') startNew();
    else if (control && event.key === 'b') toggleSide();
    else if (control && event.key === ',') byId('settings').showModal();
    else if (!typing && !control && event.key === '/') byId('message').focus();
    else return;
    event.preventDefault();
  });
}

// Reads the properties of the server.
async function readServer() {
  const models = await (await ask('/v1/models')).json();
  server.model = textOr(models.data && models.data[0] && models.data[0].id, '');
  byId('model').textContent = server.model;
  const state = await ask('/v1/sluice/state').then((response) => response.json()).catch(() => ({}));
  server.context = Number(state.context) || 0;
  return state.data === true;
}

async function start() {
  setUpTheme();
  setUpSettings();
  setUpSide();
  setUpComposer();
  setUpDialogs();
  setUpMemory();
  setUpKeys();
  showThread();
  let onServer = false;
  try {
    onServer = await readServer();
  } catch (error) {
    notice(error.message);
  }
  store = await openStore(onServer);
  byId('place').textContent = store.place;
  summaries = await store.list().catch(() => []);
  const open = remembered.get('open');
  if (summaries.some(({id}) => id === open)) await openConversation(open);
  else showThread();
}

start();

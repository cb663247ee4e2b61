// The list of conversations, and their export and import as files.

let summaries = [];  // {id, title, updated} of all that are kept
let unsaved = 0;     // conversations that are on their way to where they are kept

async function save(conversation) {
  if (Object.keys(conversation.messages).length === 0) return;
  summaries = [summaryOf(conversation), ...summaries.filter((other) => other.id !== conversation.id)];
  showSide();
  if (conversation === current) remembered.set('open', conversation.id);
  document.body.dataset.unsaved = unsaved += 1;
  try {
    await store.save(structuredClone(conversation));
  } catch (error) {
    notice(`This conversation could not be saved. ${error.message}`);
  }
  document.body.dataset.unsaved = unsaved -= 1;
}

function showSide() {
  const wanted = byId('search').value.trim().toLowerCase();
  const shown = summaries.filter(({title}) => (title || '').toLowerCase().includes(wanted))
      .sort((one, other) => other.updated - one.updated);
  byId('conversations').replaceChildren(...shown.map(buildEntry));
}

function buildEntry({id, title}) {
  const open = button(title || 'Untitled', `Open ${title || 'Untitled'}`, () => openConversation(id), 'entry');
  if (id === current.id) open.setAttribute('aria-current', 'true');
  if (running.has(id)) open.classList.add('running');
  const remove = button('✕', `Delete ${title || 'Untitled'}`, () => removeConversation(id, title), 'icon');
  return element('li', {}, open, remove);
}

async function openConversation(id) {
  const run = running.get(id);
  const loaded = run ? run.conversation : checkedConversation(await store.load(id).catch(() => null));
  if (!loaded) return notice('This conversation could not be read.');
  interrupted(loaded);
  openThis(loaded);
}

// An answer that was in progress when the page was closed counts as stopped.
function interrupted(conversation) {
  if (running.has(conversation.id)) return;
  for (const message of Object.values(conversation.messages)) {
    if (message.finish === 'running') message.finish = 'stopped';
  }
}

function openThis(conversation) {
  current = conversation;
  remembered.set('open', conversation.id);
  byId('system').value = conversation.system;
  notice('');
  showThread();
  scrollToEnd();
  closeSideIfNarrow();
}

function startNew() {
  openThis(newConversation(current ? current.system : ''));
  byId('message').focus();
}

async function removeConversation(id, title) {
  if (!confirm(`Delete “${title || 'Untitled'}”? This cannot be undone.`)) return;
  const run = running.get(id);
  if (run) run.control.abort();
  try {
    await store.remove(id);
    summaries = summaries.filter((summary) => summary.id !== id);
  } catch (error) {
    notice(error.message);
  }
  if (id === current.id) startNew();
  else showSide();
}

function fileName(title) {
  return (title || 'conversation').replace(/[^\p{L}\p{N} _-]/gu, '').trim().slice(0, 40) || 'conversation';
}

function exportThis() {
  download(`${fileName(current.title)}.json`, JSON.stringify({conversations: [current]}, null, 1));
}

async function exportAll() {
  const conversations = [];
  for (const {id} of summaries) conversations.push(await store.load(id));
  download('sluice-conversations.json', JSON.stringify({conversations}, null, 1));
}

async function importFiles(files) {
  let last = null;
  for (const file of files) {
    const data = await file.text().then(JSON.parse).catch(() => null);
    const found = data && Array.isArray(data.conversations) ? data.conversations : [data];
    for (const conversation of found.map(checkedConversation).filter(Boolean)) {
      interrupted(conversation);
      await save(conversation);
      last = conversation;
    }
  }
  if (last) openThis(last);
  else notice('This file contains no conversation.');
}

const narrow = matchMedia('(max-width: 760px)');
const isNarrow = () => narrow.matches;

function toggleSide(open = document.body.classList.contains('side-closed')) {
  document.body.classList.toggle('side-closed', !open);
  byId('open-side').setAttribute('aria-expanded', open);
  byId('shade').hidden = !(open && isNarrow());
}

function closeSideIfNarrow() {
  if (isNarrow()) toggleSide(false);
}

function setUpSide() {
  byId('new').onclick = startNew;
  byId('open-side').onclick = () => toggleSide();
  byId('close-side').onclick = byId('shade').onclick = () => toggleSide(false);
  byId('search').oninput = showSide;
  byId('export').onclick = exportThis;
  byId('export-all').onclick = exportAll;
  byId('import').onclick = () => byId('import-file').click();
  byId('import-file').onchange = async (event) => {
    await importFiles([...event.target.files]);
    event.target.value = '';
  };
  toggleSide(!isNarrow());
  narrow.onchange = () => toggleSide(!isNarrow());  // a phone that is turned, a window that becomes small
}

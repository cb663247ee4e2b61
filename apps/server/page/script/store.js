// Stores conversations: in this browser's database, or on the server's disk if it was started with --data. Both list
// {id, title, updated} and load, save and remove a conversation by its id.

function asPromise(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

// Waits for the transaction: a request succeeds before its change is stored.
function written({transaction}) {
  return new Promise((resolve, reject) => {
    transaction.oncomplete = resolve;
    transaction.onabort = () => reject(transaction.error);
  });
}

async function openBrowserStore() {
  const opening = indexedDB.open('sluice', 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore('conversations', {keyPath: 'id'});
  const database = await asPromise(opening);
  const all = (mode) => database.transaction('conversations', mode).objectStore('conversations');
  return {
    place: 'Kept in this browser',
    list: async () => (await asPromise(all('readonly').getAll())).map(summaryOf),
    load: async (id) => asPromise(all('readonly').get(id)),
    save: async (conversation) => written(all('readwrite').put(conversation)),
    remove: async (id) => written(all('readwrite').delete(id)),
  };
}

function openServerStore() {
  const path = (id) => '/v1/sluice/conversations/' + encodeURIComponent(id);
  return {
    place: 'Kept on the server',
    list: async () => ((await (await ask('/v1/sluice/conversations')).json()).data || []).filter((one) => one && isId(one.id)),
    load: async (id) => (await ask(path(id))).json(),
    save: async (conversation) => { await ask(path(conversation.id), {method: 'PUT', body: conversation}); },
    remove: async (id) => { await ask(path(id), {method: 'DELETE'}); },
  };
}

// If neither is possible, as in a browser that forbids it, conversations last as long as the page.
function openMemoryStore() {
  const kept = new Map();
  return {
    place: 'Not kept: this browser stores nothing',
    list: async () => [...kept.values()].map(summaryOf),
    load: async (id) => kept.get(id),
    save: async (conversation) => { kept.set(conversation.id, conversation); },
    remove: async (id) => { kept.delete(id); },
  };
}

const summaryOf = ({id, title, updated}) => ({id, title, updated});

async function openStore(onServer) {
  if (onServer) return openServerStore();
  try {
    return await openBrowserStore();
  } catch {
    return openMemoryStore();
  }
}

// Small settings stored in this browser, which may forbid even that.
const remembered = {
  get(name) {
    try { return localStorage.getItem('sluice.' + name) || ''; } catch { return ''; }
  },
  set(name, value) {
    try { localStorage.setItem('sluice.' + name, value); } catch { /* lasts as long as the page */ }
  },
};

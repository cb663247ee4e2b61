// Creates elements. Text enters the page only as text nodes: nothing here, and nothing that uses it, parses HTML.

const byId = (id) => document.getElementById(id);

function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function button(text, label, action, className = '') {
  return element('button', {type: 'button', className, title: label, 'aria-label': label, onclick: action}, text);
}

// navigator.clipboard exists only on localhost and over TLS.
async function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = element('textarea', {value: text, className: 'offscreen'});
  document.body.append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
}

function copyButton(text) {
  const made = button('Copy', 'Copy', async () => {
    await copyText(text());
    made.textContent = 'Copied';
    setTimeout(() => { made.textContent = 'Copy'; }, 1500);
  }, 'small');
  return made;
}

function download(name, text) {
  const link = element('a', {href: URL.createObjectURL(new Blob([text], {type: 'application/json'})), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// randomUUID() exists only on localhost and over TLS.
function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function notice(text) {
  byId('notice').textContent = text;
  byId('notice').hidden = !text;
}

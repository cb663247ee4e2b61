// The server's tree of cached prompts: a row per node, indented by depth.

const kTiers = {device: 'device', host: 'memory', disk: 'disk'};

function sizeText(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let at = 0;
  for (; bytes >= 1024 && at + 1 < units.length; ++at) bytes /= 1024;
  return `${bytes >= 100 || at === 0 ? Math.round(bytes) : bytes.toFixed(1)} ${units[at]}`;
}

// Where the rows of a node are: the tiers that hold all of them, or the number of tokens in each.
function rowsText(node) {
  const all = node.end - node.begin;
  const parts = Object.keys(kTiers).filter((tier) => node[`on_${tier}`] > 0)
      .map((tier) => node[`on_${tier}`] < all ? `${kTiers[tier]} ${node[`on_${tier}`]}` : kTiers[tier]);
  return parts.join(', ') || 'gone';
}

function buildNode(node, depth) {
  const text = typeof node.text === 'string' ? node.text.replace(/\s+/g, ' ').trim() : '';
  const name = element('td', {className: 'memory-text', title: text}, text || `tokens ${node.begin} to ${node.end}`);
  name.dataset.depth = Math.min(depth, 8);
  const states = node.state.map((tier) => kTiers[tier]).join(', ');
  const number = (value) => element('td', {className: 'align-end'}, value);
  return element('tr', {}, name, number(`${node.end}`), element('td', {}, rowsText(node)), element('td', {}, states || '–'),
                 number(sizeText(node.bytes)), number(`${node.hits}`));
}

async function showMemory() {
  const note = byId('memory-note');
  const body = byId('memory-tree').tBodies[0];
  let nodes = [];
  try {
    nodes = (await (await ask('/v1/sluice/cache?tree')).json()).nodes;
  } catch (error) {
    body.replaceChildren();
    note.textContent = error.message;
    return;
  }
  const depths = [];
  for (const node of nodes) depths.push(node.parent < 0 ? 0 : depths[node.parent] + 1);
  body.replaceChildren(...nodes.map((node, at) => buildNode(node, depths[at])));
  const bytes = nodes.reduce((sum, node) => sum + node.bytes, 0);
  const states = nodes.filter((node) => node.state.length > 0).length;
  note.textContent = nodes.length === 0 ? 'Nothing is cached yet.' :
    `${nodes.length} nodes with ${states} states, ${sizeText(bytes)}. A prompt goes on behind the last state it agrees with.`;
}

function setUpMemory() {
  byId('open-memory').onclick = () => {
    byId('settings').close();
    byId('memory').showModal();
    showMemory();
  };
  byId('reload-memory').onclick = showMemory;
}

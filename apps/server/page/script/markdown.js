// Converts Markdown to elements: headings, lists, tables, quotes, code, emphasis and links. Everything else is shown as
// plain text. Takes time about linear in the length of any text.

const kDeepest = 8;  // nested quotes, lists and emphasis; deeper ones are text
const kLongestLabel = 1000;

const fenceOf = (line) => /^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/.exec(line);
const headingOf = (line) => /^ {0,3}(#{1,6})(?:\s+(.*))?$/.exec(line);
const itemOf = (line) => /^(\s*)([-*+]|\d{1,9}[.)])(?:\s+(.*)|$)/.exec(line);
const isRule = (line) => /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/.test(line);
const isQuote = (line) => /^ {0,3}>/.test(line);
const isBlank = (line) => line.trim() === '';
const indentOf = (line) => line.length - line.trimStart().length;

function cellsOf(line) {
  const cells = line.trim().replace(/\\\|/g, '\u0001').replace(/^\|/, '').replace(/\|$/, '').split('|');
  return cells.map((cell) => cell.replaceAll('\u0001', '|').trim());
}

function isTable(lines, at) {
  const rule = lines[at + 1];
  if (!lines[at].includes('|') || rule === undefined || !rule.includes('-')) return false;
  const cells = cellsOf(rule);
  return cells.every((cell) => /^:?-+:?$/.test(cell)) && cells.length === cellsOf(lines[at]).length;
}

const startsBlock = (lines, at) => fenceOf(lines[at]) || headingOf(lines[at]) || isRule(lines[at]) ||
    isQuote(lines[at]) || itemOf(lines[at]) || isTable(lines, at);

// The line after the block that begins at `at`, and a function that creates its element.
function blockAt(lines, at) {
  const line = lines[at];
  if (fenceOf(line)) return {end: fenceEnd(lines, at), build: buildCode};
  if (headingOf(line)) return {end: at + 1, build: buildHeading};
  if (isRule(line)) return {end: at + 1, build: () => element('hr')};
  if (isQuote(line)) return {end: endWhile(lines, at, (next) => isQuote(lines[next])), build: buildQuote};
  if (itemOf(line)) return {end: listEnd(lines, at), build: buildList};
  if (isTable(lines, at)) return {end: endWhile(lines, at, (next) => lines[next].includes('|')), build: buildTable};
  return {end: endWhile(lines, at, (next) => !isBlank(lines[next]) && !startsBlock(lines, next)), build: buildParagraph};
}

function endWhile(lines, at, goesOn) {
  let end = at + 1;
  while (end < lines.length && goesOn(end)) end++;
  return end;
}

function fenceEnd(lines, at) {
  const fence = fenceOf(lines[at])[1];
  const closes = (line) => line.trim().startsWith(fence) && line.trim().replaceAll(fence[0], '') === '';
  const end = endWhile(lines, at, (next) => !closes(lines[next]));
  return Math.min(end + 1, lines.length);
}

function listEnd(lines, at) {
  const indent = indentOf(lines[at]);
  let end = at + 1;
  for (let next = end; next < lines.length; next++) {
    if (isBlank(lines[next])) continue;
    const deeper = indentOf(lines[next]) > indent;
    const item = itemOf(lines[next]) && !isRule(lines[next]) && indentOf(lines[next]) >= indent;
    const lazy = next === end && !startsBlock(lines, next);
    if (!deeper && !item && !lazy) break;
    end = next + 1;
  }
  return end;
}

function buildCode(lines) {
  const [, fence, language] = fenceOf(lines[0]);
  const closed = lines.length > 1 && lines[lines.length - 1].trim().startsWith(fence);
  const code = lines.slice(1, closed ? -1 : undefined).join('\n');
  return element('div', {className: 'code'},
      element('div', {className: 'code-head'}, element('span', {}, language.trim()), copyButton(() => code)),
      element('pre', {tabIndex: 0}, element('code', {}, code)));
}

function buildHeading(lines, depth) {
  const [, marks, text] = headingOf(lines[0]);
  const made = element('h' + Math.min(marks.length + 2, 6));  // below those of the page
  inline(made, (text || '').replace(/\s+#+\s*$/, ''), depth);
  return made;
}

function buildQuote(lines, depth) {
  return element('blockquote', {}, ...buildBlocks(lines.map((line) => line.replace(/^ {0,3}> ?/, '')), depth + 1));
}

function buildParagraph(lines, depth) {
  const made = element('p');
  inline(made, lines.map((line) => line.trimStart()).join('\n'), depth);
  return made;
}

function buildTable(lines, depth) {
  const alignments = cellsOf(lines[1]).map((cell) => (cell.endsWith(':') ? (cell.startsWith(':') ? 'center' : 'end') : 'start'));
  const row = (line, tag) => element('tr', {}, ...cellsOf(line).slice(0, alignments.length).map((text, column) => {
    const cell = element(tag, {className: 'align-' + alignments[column]});
    inline(cell, text, depth);
    return cell;
  }));
  return element('div', {className: 'table', tabIndex: 0}, element('table', {},
      element('thead', {}, row(lines[0], 'th')), element('tbody', {}, ...lines.slice(2).map((line) => row(line, 'td')))));
}

function buildList(lines, depth) {
  const first = itemOf(lines[0]);
  const ordered = /\d/.test(first[2]);
  const made = element(ordered ? 'ol' : 'ul');
  if (ordered) made.start = parseInt(first[2], 10);
  for (const item of itemsOf(lines)) made.append(buildItem(item, depth));
  return made;
}

function itemsOf(lines) {
  const indent = indentOf(lines[0]);
  const items = [];
  for (const line of lines) {
    const start = itemOf(line);
    if (start && start[1].length <= indent + 1) items.push([start[3] || '']);
    else items[items.length - 1].push(line);
  }
  return items.map(([head, ...rest]) => {
    const shift = Math.min(...rest.filter((line) => !isBlank(line)).map(indentOf), 1000);
    return [head, ...rest.map((line) => line.slice(Math.min(shift, indentOf(line))))];
  });
}

function buildItem(lines, depth) {
  const box = /^\[([ xX])\]\s+/.exec(lines[0]);
  if (box) lines = [lines[0].slice(box[0].length), ...lines.slice(1)];
  const blocks = buildBlocks(lines, depth + 1);
  const tight = blocks.length > 0 && blocks[0].tagName === 'P';
  if (tight) blocks.splice(0, 1, ...blocks[0].childNodes);
  return element('li', {}, box ? (box[1] === ' ' ? '☐ ' : '☑ ') : null, ...blocks);
}

function splitBlocks(lines, depth) {
  if (depth > kDeepest) return lines.length ? [{lines, build: buildParagraph}] : [];
  const blocks = [];
  for (let at = 0; at < lines.length;) {
    if (isBlank(lines[at])) { at++; continue; }
    const {end, build} = blockAt(lines, at);
    blocks.push({lines: lines.slice(at, end), build});
    at = end;
  }
  return blocks;
}

const buildBlocks = (lines, depth) => splitBlocks(lines, depth).map((block) => block.build(block.lines, depth));

// What may begin inline markup: an escape, code, emphasis, a link or a picture, an address, the end of a line.
const kInline = /\\[!-/:-@[-`{-~]|`+|\*\*|~~|\*|__|_|!?\[|https?:\/\/[^\s<>"`]+|\n/g;

function inline(parent, text, depth) {
  const missing = new Set();  // marks that do not close any more from here on
  let plain = 0;
  kInline.lastIndex = 0;
  for (let found; (found = kInline.exec(text));) {
    const at = found.index;
    const made = inlineAt(text, at, found[0], {depth, missing});
    if (!made) continue;
    parent.append(text.slice(plain, at), made.node);
    plain = made.end;
    kInline.lastIndex = made.end;
  }
  parent.append(text.slice(plain));
}

function inlineAt(text, at, mark, context) {
  if (mark[0] === '\\') return {node: mark[1], end: at + 2};
  if (mark === '\n') return {node: element('br'), end: at + 1};
  if (mark[0] === '`') return inlineCode(text, at, mark, context);
  if (mark === '[') return inlineLink(text, at, context);
  if (mark === '![') return inlineLink(text, at + 1, context);  // nothing is fetched: a picture is a link to it
  if (mark.startsWith('http')) return inlineAddress(at, mark);
  return inlineEmphasis(text, at, mark, context);
}

function inlineCode(text, at, mark, {missing}) {
  if (missing.has(mark)) return null;
  for (let from = at + mark.length;;) {
    const close = text.indexOf(mark, from);
    if (close < 0) { missing.add(mark); return null; }
    let end = close + mark.length;
    while (text[end] === '`') end++;
    if (end === close + mark.length) {
      const code = text.slice(at + mark.length, close).replaceAll('\n', ' ');
      return {node: element('code', {}, code.trim() ? code.replace(/^ (.*) $/, '$1') : code), end};
    }
    from = end;
  }
}

const kEmphasis = {'**': 'strong', '__': 'strong', '*': 'em', '_': 'em', '~~': 'del'};
const isWord = (character) => character !== undefined && /[\p{L}\p{N}_]/u.test(character);

function inlineEmphasis(text, at, mark, {depth, missing}) {
  const from = at + mark.length;
  const opens = text[from] !== undefined && !/\s/.test(text[from]) && !(mark[0] === '_' && isWord(text[at - 1]));
  if (!opens || missing.has(mark) || depth > kDeepest) return null;
  for (let close = text.indexOf(mark, from + 1); close >= 0; close = text.indexOf(mark, close + 1)) {
    const single = mark.length === 1 && text[close + 1] === mark;  // belongs to a double mark
    if (single) { close++; continue; }
    if (/\s/.test(text[close - 1]) || (mark[0] === '_' && isWord(text[close + mark.length]))) continue;
    const node = element(kEmphasis[mark]);
    inline(node, text.slice(from, close), depth + 1);
    return {node, end: close + mark.length};
  }
  missing.add(mark);
  return null;
}

// Only http and https addresses become links.
function linkTo(address, label) {
  return element('a', {href: address, target: '_blank', rel: 'noopener noreferrer nofollow'}, label);
}

function inlineLink(text, at, {depth}) {
  if (depth > kDeepest) return null;
  const found = /^\[([^\]]*)\]\(\s*(https?:\/\/[^\s<>()"]+(?:\([^\s<>()"]*\)[^\s<>()"]*)*)(?:\s+"[^"]*")?\s*\)/i
      .exec(text.slice(at, at + kLongestLabel));
  if (!found) return null;
  return {node: linkTo(found[2], found[1] || found[2]), end: at + found[0].length};
}

function inlineAddress(at, mark) {
  const address = mark.replace(/[.,;:!?)\]*_~']+$/, '');
  return {node: linkTo(address, address), end: at + address.length};
}

// Shows `source` in `target`. When called again as an answer grows, replaces only the blocks that changed, so that
// selections, focus and scroll positions are kept.
function showMarkdown(target, source) {
  const blocks = splitBlocks(source.replace(/\r\n?/g, '\n').split('\n'), 0);
  const shown = target.shownBlocks || [];
  target.shownBlocks = blocks.map((block) => block.lines.join('\n'));
  let same = 0;
  while (same < blocks.length && shown[same] === target.shownBlocks[same]) same++;
  while (target.childNodes.length > same) target.lastChild.remove();
  target.append(...blocks.slice(same).map((block) => block.build(block.lines, 0)));
}

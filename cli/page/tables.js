/* tables.js: a plan's figures, the largest blocks at its peak, and what it swaps. */

const LARGEST = 50; // rows of a table

/* ---- figures ---- */

/* A card's value stands in the element too, unrounded. */
function cardOf(key, name, value, text, note) {
  return make('div', { class: `card ${key}`, 'data-key': key, 'data-value': String(value) },
    make('b', null, name), make('strong', null, text), make('small', null, note));
}

function poolCards(plan) {
  const { subject } = plan;
  const lowest = subject.floor ? `lowest possible: ${bytesText(subject.floor)}` : 'nothing leaves the device';
  const ratio = `${(plan.footprint / plan.peak).toFixed(4)} × the peak load`;
  return [cardOf('limit', 'limit', 'none', 'none', lowest),
    cardOf('footprint', 'footprint', plan.footprint, bytesText(plan.footprint),
      ratio + (plan.raw.optimal ? ', proven optimal' : ''))];
}

function limitCards(plan) {
  const { subject } = plan;
  const isFree = plan.kind === 'free';
  const share = isFree ? 'the lowest found that costs no time' : `${shareText(plan.share)} of the peak load`;
  const cards = [cardOf('limit', 'limit', plan.limit, bytesText(plan.limit), share)];
  if (plan.exists) {
    const below = `${shareText(1 - plan.footprint / subject.peakLoad)} below the peak load`;
    const bound = isFree ? 'of the undisturbed time'
      : `bound ${shareText(plan.boundOverhead)}${plan.boundOverhead > 0 ? ': no plan of swaps costs less' : ''}`;
    cards.push(cardOf('footprint', 'footprint', plan.footprint, bytesText(plan.footprint), below),
      cardOf('overhead', 'overhead', plan.overhead, shareText(plan.overhead), bound));
  }
  return cards;
}

function lastCards(plan) {
  const { subject } = plan;
  const cards = [];
  if (subject.hasTime) {
    const ns = subject.iterationNs * (1 + plan.overhead);
    const note = plan.overhead > 0 ? `${timeText(subject.iterationNs)} undisturbed` : 'undisturbed';
    cards.push(cardOf('iteration', subject.turn.replace('an ', ''), ns, timeText(ns), note));
  }
  if (plan.kind === 'pool') {
    cards.push(cardOf('blocks', 'blocks', subject.nBlocks, subject.nBlocks.toLocaleString('en-US'),
      `${countText(subject.nEvents, 'event', 'events')} in ${subject.turn}`));
  } else {
    cards.push(cardOf('bytes_out', 'copied out', plan.bytesOut, bytesText(plan.bytesOut),
      `${bytesText(plan.bytesIn)} in, ${countText(plan.nSwaps, 'copy', 'copies')}, in ${subject.turn}`));
  }
  return cards;
}

function fillCards(element, plan) {
  const { peakLoad } = plan.subject;
  element.replaceChildren(
    cardOf('peak_load', 'peak load', peakLoad, bytesText(peakLoad), 'alive at once, without swaps'),
    ...(plan.kind === 'pool' ? poolCards(plan) : limitCards(plan)),
    ...(plan.exists ? lastCards(plan) : []));
}

/* ---- tables ---- */

/* head: [text, isName] for each column; rows: { block, cells }. */
function tableOf(head, rows) {
  const cell = (tag, text, isName) => make(tag, isName ? { class: 'name', title: text } : null, text);
  return make('div', { class: 'scroll' }, make('table', null,
    make('thead', null, make('tr', null, ...head.map(([text, isName]) => cell('th', text, isName)))),
    make('tbody', null, ...rows.map(({ block, cells }) => {
      const row = make('tr', { 'data-block': String(block), tabindex: '0' });
      cells.forEach((text, i) => row.append(cell('td', text, head[i][1])));
      return row;
    }))));
}

function theLargest(n) {
  return n > LARGEST ? `; the ${LARGEST} largest` : '';
}

function peakRow(plan, { block, bytes }) {
  const { subject, layout } = plan;
  const whole = subject.blocks.bytes[block];
  const kernel = subject.livesAlways(block) ? null : subject.execFrom(subject.blocks.begin[block]);
  const nAccesses = subject.accessFirst[block + 1] - subject.accessFirst[block];
  return { block, cells: [`#${subject.blocks.id[block]}`, bytesText(whole), bytes < whole ? bytesText(bytes) : 'all',
    shareText(bytes / layout.load[layout.peakEvent]), lifeText(subject, block), String(nAccesses), kernel ?? ''] };
}

function peakTable(plan) {
  const { layout } = plan;
  const largest = layout.largestAtPeak();
  const held = `${bytesText(layout.load[layout.peakEvent])} in ${countText(largest.length, 'block', 'blocks')}`;
  const when = layout.clock ? timeText(layout.clock.beginNs[layout.peakEvent]) : `event ${layout.peakEvent}`;
  const head = [['block'], ['size'], ['there'], ['of the peak'], ['lives'], ['accesses'], ['allocated before', true]];
  return make('section', { class: 'peak' },
    make('h3', null, 'Largest blocks at the peak'),
    make('p', null, `${held} at ${when}${theLargest(largest.length)}`),
    tableOf(head, largest.slice(0, LARGEST).map((entry) => peakRow(plan, entry))));
}

function moveRow(subject, move) {
  const isNext = move.usedAfter <= move.usedBefore;
  return { block: move.block, cells: [`#${subject.blocks.id[move.block]}`, bytesText(move.bytes),
    bytesText(subject.blocks.bytes[move.block]), subject.execNameAt(move.usedBefore),
    subject.execNameAt(move.usedAfter) + (isNext ? ' (next)' : ''), timeText(move.gap), timeText(move.copiesNs)] };
}

function swapTable(plan) {
  const moves = plan.layout.mergedMoves();
  const sums = `${bytesText(plan.bytesOut)} out and ${bytesText(plan.bytesIn)} in, in ${plan.subject.turn}`;
  const head = [['block'], ['leaves'], ['of'], ['after', true], ['back for', true], ['gap'], ['copies']];
  return make('section', { class: 'swapped' },
    make('h3', null, 'What is swapped'),
    make('p', null, moves.length === 0 ? 'Nothing has to leave the device.'
      : `${countText(moves.length, 'gap', 'gaps')}, ${sums}${theLargest(moves.length)}`),
    moves.length === 0 ? null
      : tableOf(head, moves.slice(0, LARGEST).map((move) => moveRow(plan.subject, move))));
}

function tablesOf(plan) {
  return plan.kind === 'pool' ? [peakTable(plan)] : [peakTable(plan), swapTable(plan)];
}

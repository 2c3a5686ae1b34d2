/* words.js: what is known of a block, an exec, a copy or a moment, as elements for the tip and for what is held. */

const NAME = 60; // letters of a kernel's name: some have thousands

function keyed(key, text) {
  return make('p', null, make('span', { class: 'key' }, key + ' '), text);
}

function lifeText(subject, block) {
  if (subject.livesAlways(block)) {
    return 'always';
  }
  const begin = subject.blocks.begin[block];
  const end = subject.blocks.end[block];
  const { clock } = subject.pool.layout;
  if (!clock) {
    return countText(end - begin, 'event', 'events');
  }
  const laps = Math.floor((end - 1) / clock.endNs.length);
  return timeText(clock.endNs[(end - 1) % clock.endNs.length] + laps * clock.spanNs - clock.beginNs[begin]);
}

function lifeLines(subject, block) {
  if (subject.livesAlways(block)) {
    return [keyed('lives', 'always: before the iteration and after it')];
  }
  const begin = subject.blocks.begin[block];
  const end = subject.blocks.end[block];
  const name = (text, otherwise) => shorten(text ?? otherwise, NAME);
  const lines = [keyed('lives', `${lifeText(subject, block)}, events ${begin} to ${end}`
    + (end > subject.round ? ' (into the next iteration)' : ''))];
  if (subject.hasTime) {
    lines.push(keyed('allocated', `after ${name(subject.execBefore(begin), 'the begin')}, `
      + `before ${name(subject.execFrom(begin), 'the end')}`));
    lines.push(keyed('freed', `after ${name(subject.execBefore(end), 'the begin')}`));
  }
  return lines;
}

/* The first and the last `most` of them. */
function accessLine(subject, block, most) {
  const verbs = { r: 'reads', w: 'writes', x: 'uses' };
  const accesses = subject.accessesOf(block);
  const text = (access) => `${shorten(access.name, NAME)} ${verbs[access.kind]}`;
  if (accesses.length === 0) {
    return keyed('accesses', 'none seen');
  }
  const shown = accesses.length <= 2 * most ? accesses.map(text)
    : [...accesses.slice(0, most).map(text), '…', ...accesses.slice(-most).map(text)];
  return keyed(countText(accesses.length, 'access:', 'accesses:'), shown.join(', '));
}

function placeLine(plan, i) {
  const { layout, subject } = plan;
  const bytes = layout.hi[i] - layout.lo[i];
  const at = layout.at[i];
  const isPart = bytes < subject.blocks.bytes[layout.block[i]];
  return keyed('stands at', bytesText(layout.lo[i])
    + (isPart ? `: bytes ${bytesText(at)} to ${bytesText(at + bytes)} of it` : ''));
}

function moveLine(subject, move) {
  const isNext = move.usedAfter <= move.usedBefore;
  const name = (event) => shorten(subject.execNameAt(event), NAME);
  return keyed('swapped', `${bytesText(move.bytes)} leaves after ${name(move.usedBefore)}, `
    + `back for ${name(move.usedAfter)}${isNext ? ' of the next iteration' : ''}; `
    + `gap ${timeText(move.gap)}, copies ${timeText(move.copiesNs)}`);
}

/* Everything about a block. `i`: the rectangle pointed at, or -1. */
function blockText(plan, block, i, most = 3) {
  const { subject, layout } = plan;
  const title = `block #${subject.blocks.id[block]} · ${bytesText(subject.blocks.bytes[block])}`;
  const moves = layout.movesOf && layout.movesOf.has(block) ? layout.mergedMoves() : [];
  return [make('b', null, title), ...lifeLines(subject, block),
    subject.hasTime ? accessLine(subject, block, most) : null,
    i >= 0 ? placeLine(plan, i) : null,
    ...moves.filter((move) => move.block === block).map((move) => moveLine(subject, move))].filter(Boolean);
}

function planText(plan) {
  const title = make('b', null, `limit ${plan.label}`);
  return plan.exists ? [title, keyed('footprint', bytesText(plan.footprint)),
    keyed('overhead', `${shareText(plan.overhead)}, bound ${shareText(plan.boundOverhead)}`),
    keyed('copied out', bytesText(plan.bytesOut))] : [title, keyed('no plan', plan.reason)];
}

function copyText(plan, copy) {
  const { subject } = plan;
  const { block, bytes, usedBefore, usedAfter } = copy.move;
  const { start, end } = copy.move[copy.lane];
  const speed = (bytes / (end - start)).toFixed(1) + SPACE + 'GB/s'; // bytes a ns
  const isOut = copy.lane === 'out';
  return [make('b', null, `copy ${copy.lane} · block #${subject.blocks.id[block]} · ${bytesText(bytes)}`),
    keyed('runs', `${timeText(start)} to ${timeText(end)}: ${timeText(end - start)}, ${speed}`),
    keyed(isOut ? 'after' : 'for', shorten(subject.execNameAt(isOut ? usedBefore : usedAfter), NAME))];
}

function execText(plan, k) {
  const { subject, layout } = plan;
  const start = layout.execStart[k];
  const end = layout.execEnd[k];
  return [make('b', null, shorten(subject.names[subject.execName[k]], 2 * NAME)),
    keyed('runs', `${timeText(start)} to ${timeText(end)}: ${timeText(end - start)}`),
    keyed('event', `${subject.execAt[k]} of the iteration, exec ${k + 1} of ${subject.execAt.length}`)];
}

/* `value`: a time in the axis's unit; `clock`: null where that is events. */
function loadText(plan, event, value, clock) {
  const { subject, layout } = plan;
  const at = ({ x, y }) => y[Math.max(0, countBelow(x, value, true) - 1)];
  const lines = [make('b', null, bytesText(at(layout.stepsBy(clock)))),
    keyed('held', `at event ${event}${clock ? ', ' + timeText(value) : ''}`)];
  const pool = subject.pool.layout;
  if (!layout.isPool && pool.length === layout.length) {
    lines.push(keyed('without swaps', bytesText(at(pool.stepsBy(clock)))));
  }
  const name = subject.execBefore(event + 1);
  if (name) {
    lines.push(keyed('kernel', shorten(name, 2 * NAME)));
  }
  return lines;
}

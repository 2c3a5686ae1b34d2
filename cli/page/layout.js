/* layout.js: a plan laid out: rectangles of the arena, the load they come to, when events and copies happen.
 *
 * Rectangles are sorted by their begin and kept in chunks with the latest end of each, so that what lies in a part of
 * the period is found without looking at the rest. */

const CHUNK = 64;

/* From events to ns and back. Execs run when the plan says; mallocs and frees between two share the pause evenly. */
class Clock {
  constructor(subject, starts, ends, periodNs, nPeriods) {
    const n = subject.nEvents;
    const last = ends.length > 0 ? ends[ends.length - 1] : 0;
    this.periodNs = Math.max(periodNs, last);
    this.beginNs = new Float64Array(n * nPeriods);
    this.endNs = new Float64Array(n * nPeriods);
    let from = 0;
    let now = 0;
    for (let k = 0; k <= starts.length; k++) {
      const at = k < starts.length ? subject.execAt[k] : n;
      const until = k < starts.length ? starts[k] : this.periodNs;
      for (let t = from; t < at; t++) {
        this.beginNs[t] = now + (until - now) * (t - from) / (at - from);
        this.endNs[t] = now + (until - now) * (t + 1 - from) / (at - from);
      }
      if (k < starts.length) {
        this.beginNs[at] = starts[k];
        this.endNs[at] = now = ends[k];
        from = at + 1;
      }
    }
    for (let t = n; t < n * nPeriods; t++) {
      this.beginNs[t] = this.beginNs[t - n] + this.periodNs;
      this.endNs[t] = this.endNs[t - n] + this.periodNs;
    }
    this.spanNs = this.periodNs * nPeriods;
  }

  /* A moment as an event and a part of it. */
  eventAt(ns) {
    const t = clamp(countBelow(this.beginNs, ns, true) - 1, 0, this.beginNs.length - 1);
    const length = this.endNs[t] - this.beginNs[t];
    return t + (length > 0 ? clamp((ns - this.beginNs[t]) / length, 0, 1) : 0);
  }
}

class Layout {
  constructor(plan) {
    const subject = plan.subject;
    this.plan = plan;
    this.isPool = plan.kind === 'pool';
    this.nPeriods = this.isPool ? subject.nPeriods : 1;
    this.length = subject.nEvents * this.nPeriods;
    this.clock = this.makeClock(subject, plan);
    this.copies = { out: [], in: [] };
    this.steps = new Map(); // the load over time, by clock
    this.makeRects(plan.raw.stays);
    this.makeIndex();
    this.makeLoad();
    if (!this.isPool && this.clock) {
      this.makeCopies(plan.raw.moves);
    }
  }

  makeClock(subject, plan) {
    if (!subject.hasTime) {
      return null;
    }
    this.execStart = this.isPool ? subject.execStart : Float64Array.from(plan.raw.exec_start);
    this.execEnd = this.isPool ? subject.execEnd : Float64Array.from(plan.raw.exec_end);
    this.pauseNs = subject.execStart[0]; // before every exec, undisturbed
    return new Clock(subject, this.execStart, this.execEnd, subject.iterationNs * (1 + plan.overhead), this.nPeriods);
  }

  /* What lives across the end of the round has a part at its begin. */
  makeRects(stays) {
    const rects = [];
    for (let i = 0; i < stays.block.length; i++) {
      const lo = stays.offset[i];
      const rect = { block: stays.block[i], lo, hi: lo + stays.bytes[i], at: stays.at ? stays.at[i] : 0 };
      const begin = stays.begin[i];
      const end = stays.end[i];
      if (end - begin >= this.length) {
        rects.push({ ...rect, begin: 0, end: this.length });
      } else if (end > this.length) {
        rects.push({ ...rect, begin, end: this.length }, { ...rect, begin: 0, end: end - this.length });
      } else {
        rects.push({ ...rect, begin, end });
      }
    }
    const merged = this.isPool ? rects : joinPieces(rects);
    merged.sort((a, b) => a.begin - b.begin || a.lo - b.lo);
    this.setRects(merged);
  }

  setRects(rects) {
    this.n = rects.length;
    this.block = Uint32Array.from(rects, (rect) => rect.block);
    this.begin = Uint32Array.from(rects, (rect) => rect.begin);
    this.end = Uint32Array.from(rects, (rect) => rect.end);
    this.lo = Float64Array.from(rects, (rect) => rect.lo);
    this.hi = Float64Array.from(rects, (rect) => rect.hi);
    this.at = Float64Array.from(rects, (rect) => rect.at);
    this.leftNs = new Float64Array(this.n); // when the copy out ends of what leaves at its end; 0: nothing does
  }

  /* When a rectangle ends, in ns. */
  endNs(i) {
    return Math.max(this.clock.endNs[this.end[i] - 1], this.leftNs[i]);
  }

  makeIndex() {
    this.latestEnd = new Uint32Array(Math.ceil(this.n / CHUNK));
    this.ofBlock = new Map(); // rectangles by block
    for (let i = 0; i < this.n; i++) {
      const chunk = Math.floor(i / CHUNK);
      this.latestEnd[chunk] = Math.max(this.latestEnd[chunk], this.end[i]);
      const list = this.ofBlock.get(this.block[i]);
      if (list) {
        list.push(i);
      } else {
        this.ofBlock.set(this.block[i], [i]);
      }
    }
  }

  /* Calls for each rectangle that is there at some time of [from, to), in events. */
  visit(from, to, call) {
    const n = countBelow(this.begin, to);
    for (let chunk = 0; chunk * CHUNK < n; chunk++) {
      if (this.latestEnd[chunk] <= from) {
        continue;
      }
      const last = Math.min(n, (chunk + 1) * CHUNK);
      for (let i = chunk * CHUNK; i < last; i++) {
        if (this.end[i] > from) {
          call(i);
        }
      }
    }
  }

  /* The rectangle at a time and an address; -1: none. */
  hit(event, address) {
    let found = -1;
    this.visit(event, event + 1, (i) => {
      if (this.lo[i] <= address && address < this.hi[i]) {
        found = i;
      }
    });
    return found;
  }

  makeLoad() {
    const change = new Float64Array(this.length + 1);
    this.steady = 0;
    for (let i = 0; i < this.n; i++) {
      const bytes = this.hi[i] - this.lo[i];
      if (this.begin[i] === 0 && this.end[i] === this.length) {
        this.steady += bytes;
      }
      change[this.begin[i]] += bytes;
      change[this.end[i]] -= bytes;
    }
    this.load = new Float64Array(this.length);
    this.peakEvent = 0;
    for (let t = 0, sum = 0; t < this.length; t++) {
      sum += change[t];
      this.load[t] = sum;
      if (sum > this.load[this.peakEvent]) {
        this.peakEvent = t;
      }
    }
  }

  /* The load as steps: y[i] from x[i] to x[i + 1], in ns of a clock, or in events (null). With the plan's own clock
   * what is being copied out counts until it has left. */
  stepsBy(clock) {
    if (this.steps.has(clock)) {
      return this.steps.get(clock);
    }
    const changes = new Map();
    const add = (at, bytes) => changes.set(at, (changes.get(at) || 0) + bytes);
    for (let i = 0; i < this.n; i++) {
      const bytes = this.hi[i] - this.lo[i];
      const own = clock === this.clock && clock !== null;
      add(clock ? clock.beginNs[this.begin[i]] : this.begin[i], bytes);
      add(own ? this.endNs(i) : clock ? clock.endNs[this.end[i] - 1] : this.end[i], -bytes);
    }
    const x = Float64Array.from(changes.keys()).sort();
    const y = new Float64Array(x.length);
    for (let i = 0, sum = 0; i < x.length; i++) {
      sum += changes.get(x[i]);
      y[i] = sum;
    }
    this.steps.set(clock, { x, y });
    return { x, y };
  }

  /* Blocks that are there at the peak, the largest first: [{ block, bytes }]. */
  largestAtPeak() {
    const bytes = new Map();
    this.visit(this.peakEvent, this.peakEvent + 1, (i) => {
      bytes.set(this.block[i], (bytes.get(this.block[i]) || 0) + this.hi[i] - this.lo[i]);
    });
    return Array.from(bytes, ([block, sum]) => ({ block, bytes: sum })).sort((a, b) => b.bytes - a.bytes);
  }

  /* Moves are the plan's swaps. A copy across the period's end is drawn in two parts. */
  makeCopies(moves) {
    const period = this.clock.periodNs;
    this.moves = moves.block.map((block, i) => ({
      block,
      bytes: moves.bytes[i],
      at: moves.at[i],
      usedBefore: moves.used_before[i],
      usedAfter: moves.used_after[i],
      gap: moves.gap[i],
      out: { start: moves.out_start[i], end: moves.out_end[i] },
      in: { start: moves.in_start[i], end: moves.in_end[i] },
    }));
    this.movesOf = new Map();
    for (const move of this.moves) {
      move.places = this.placesOf(move);
      this.noteLeaving(move);
      this.movesOf.set(move.block, (this.movesOf.get(move.block) || []).concat(move));
      for (const lane of ['out', 'in']) {
        const { start, end } = move[lane];
        if (start < 0) {
          continue; // nothing to copy: the host has it
        }
        this.copies[lane].push({ move, lane, start, end: Math.min(end, period) });
        if (end > period) {
          this.copies[lane].push({ move, lane, start: 0, end: end - period });
        }
      }
    }
    for (const list of Object.values(this.copies)) {
      list.sort((a, b) => a.start - b.start);
    }
  }

  /* A block that leaves holds its memory until its copy has ended: that can be in the wait after its last exec. */
  noteLeaving(move) {
    const { end } = move.out;
    for (const i of this.ofBlock.get(move.block) || []) {
      const next = countBelow(this.plan.subject.execAt, this.end[i]);
      const nextNs = next < this.execStart.length ? this.execStart[next] : this.clock.periodNs;
      const isOfIt = move.at < this.at[i] + this.hi[i] - this.lo[i] && this.at[i] < move.at + move.bytes;
      if (isOfIt && end > this.clock.endNs[this.end[i] - 1] && end <= nextNs + 1) {
        this.leftNs[i] = Math.max(this.leftNs[i], Math.min(end, nextNs));
      }
    }
  }

  /* Where in the arena the bytes of a move stand: [lo, hi], each once, though they are there more than once. */
  placesOf(move) {
    const places = new Map();
    for (const i of this.ofBlock.get(move.block) || []) {
      const first = Math.max(this.at[i], move.at);
      const last = Math.min(this.at[i] + this.hi[i] - this.lo[i], move.at + move.bytes);
      if (move.at >= 0 && first < last) {
        const lo = this.lo[i] + first - this.at[i];
        places.set(lo, [lo, lo + last - first]);
      }
    }
    return [...places.values()];
  }

  /* Swaps as people see them: parts of a block that leave in one gap are one, the largest first. */
  mergedMoves() {
    if (this.merged) {
      return this.merged;
    }
    const merged = new Map();
    for (const move of this.moves || []) {
      const key = `${move.block} ${move.usedBefore}`;
      const sum = merged.get(key);
      if (sum) {
        sum.bytes += move.bytes;
        sum.copiesNs += copiesNs(move);
      } else {
        merged.set(key, { ...move, copiesNs: copiesNs(move) });
      }
    }
    this.merged = [...merged.values()].sort((a, b) => b.bytes - a.bytes);
    return this.merged;
  }
}

/* A swapped block is placed in pieces; those that stand in a row all the while are one rectangle. */
function joinPieces(rects) {
  const joined = [];
  rects.sort((a, b) => a.block - b.block || a.begin - b.begin || a.end - b.end || a.at - b.at);
  for (const rect of rects) {
    const last = joined[joined.length - 1];
    const isNext = last && last.block === rect.block && last.begin === rect.begin && last.end === rect.end
      && last.hi === rect.lo && last.at + last.hi - last.lo === rect.at;
    if (isNext) {
      last.hi = rect.hi;
    } else {
      joined.push(rect);
    }
  }
  return joined;
}

function copiesNs(move) {
  return Math.max(0, move.out.end - move.out.start) + Math.max(0, move.in.end - move.in.start);
}

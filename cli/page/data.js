/* data.js: what the command wrote (cli/report_data.c), as objects.
 *
 * A *subject* is one trace. Its plans are one without a limit (the pool's) and those under limits; a limit for which
 * none was found has a plan that says why. Blocks, execs and kernels are rows of columns. */

class Plan {
  constructor(subject, raw, kind) {
    this.subject = subject;
    this.raw = raw;
    this.kind = kind; // 'pool', 'free' (costs no time) or 'limit'
    this.exists = raw.footprint !== null;
    this.percent = raw.percent ?? null;
    this.limit = kind === 'pool' ? null : raw.limit ?? Math.floor(subject.peakLoad * raw.percent / 100);
    this.footprint = raw.footprint;
    this.bound = kind === 'pool' ? raw.bound : raw.footprint_bound;
    this.peak = kind === 'pool' ? raw.load : raw.planned_peak;
    this.overhead = kind === 'pool' ? 0 : raw.overhead;
    this.boundOverhead = kind === 'pool' ? 0 : raw.bound_overhead;
    this.nSwaps = raw.swaps ?? 0;
    this.bytesOut = raw.bytes_out ?? 0;
    this.bytesIn = raw.bytes_in ?? 0;
    this.reason = raw.reason ?? '';
    this.made = null;
  }

  /* Which stop of the slider this is: plans of two subjects with equal keys stand beside each other. */
  get key() {
    return this.kind === 'limit' ? String(this.percent) : this.kind;
  }

  /* Of the peak load: what the stops are sorted by. */
  get share() {
    return this.kind === 'pool' ? Infinity : this.limit / this.subject.peakLoad;
  }

  get label() {
    if (this.kind === 'pool') {
      return 'none';
    }
    return `${shareText(this.share)} · ${bytesText(this.limit)}${this.kind === 'free' ? ' · no slowdown' : ''}`;
  }

  get layout() {
    this.made = this.made || new Layout(this);
    return this.made;
  }
}

class Subject {
  constructor(raw) {
    this.name = raw.name;
    this.meta = raw.meta;
    this.nEvents = raw.events; // of a period
    this.nPeriods = raw.pool.periods;
    this.iterations = raw.iterations.sort((a, b) => a - b); // where they begin, if the period has several
    this.turn = this.iterations.length > 0 ? `${this.iterations.length} iterations` : 'an iteration'; // a period
    this.iterationNs = raw.iteration_ns;
    this.peakLoad = raw.peak_load ?? raw.pool.load;
    this.loadTop = Math.max(this.peakLoad, 1) * 1.12; // an empty one has a scale, too
    this.floor = raw.floor ?? null;
    this.floorExec = raw.floor_exec ?? '';
    this.names = raw.names;
    this.execAt = Uint32Array.from(raw.exec_at);
    this.execName = Uint32Array.from(raw.exec_name);
    this.execStart = Float64Array.from(raw.exec_start);
    this.execEnd = Float64Array.from(raw.exec_end);
    this.blocks = {
      id: raw.blocks.id,
      bytes: Float64Array.from(raw.blocks.bytes),
      begin: Uint32Array.from(raw.blocks.begin),
      end: Uint32Array.from(raw.blocks.end),
    };
    this.nBlocks = this.blocks.id.length;
    this.accessFirst = Uint32Array.from(raw.blocks.access_first);
    this.access = Float64Array.from(raw.blocks.access);
    this.plans = [new Plan(this, raw.pool, 'pool')];
    for (const limit of raw.limits) {
      this.plans.push(new Plan(this, limit, limit.percent === null ? 'free' : 'limit'));
    }
    this.plans.sort((a, b) => a.share - b.share);
    this.arenaTop = Math.max(...this.plans.filter((plan) => plan.exists).map((plan) => plan.footprint), 1) * 1.03;
  }

  get pool() {
    return this.plans[this.plans.length - 1];
  }

  get hasTime() {
    return this.execAt.length > 0 && this.iterationNs > 0;
  }

  get round() {
    return this.nEvents * this.nPeriods;
  }

  planOf(key) {
    return this.plans.find((plan) => plan.key === key) || this.pool;
  }

  livesAlways(block) {
    return this.blocks.end[block] - this.blocks.begin[block] >= this.round;
  }

  /* How much of a round the block lives: its colour. */
  lifeShare(block) {
    return Math.min(1, (this.blocks.end[block] - this.blocks.begin[block]) / this.round);
  }

  /* [{ at, kind, name }], `at` counted on where the block lives across the period's end. */
  accessesOf(block) {
    const list = [];
    for (let i = this.accessFirst[block]; i < this.accessFirst[block + 1]; i++) {
      const at = Math.floor(this.access[i] / 4);
      list.push({ at, kind: 'rwx'[this.access[i] % 4], name: this.execNameAt(at) });
    }
    return list;
  }

  /* The name of the last exec before an event, or of the first one from it on. */
  execBefore(event) {
    const n = countBelow(this.execAt, event % this.nEvents);
    return n > 0 ? this.names[this.execName[n - 1]] : null;
  }

  execFrom(event) {
    const n = countBelow(this.execAt, event % this.nEvents);
    return n < this.execAt.length ? this.names[this.execName[n]] : null;
  }

  execNameAt(event) {
    return this.execFrom(event) ?? '';
  }

  /* Rows of the blocks that a text asks for: an id, a size (">10MB"), or a part of a kernel's name. */
  find(text) {
    const size = parseSize(text);
    const wanted = text.trim().toLowerCase();
    const rows = new Set();
    if (!wanted) {
      return rows;
    }
    if (size) {
      this.blocks.bytes.forEach((bytes, row) => {
        if (size.compare === '>' ? bytes >= size.bytes : bytes <= size.bytes) {
          rows.add(row);
        }
      });
      return rows;
    }
    if (/^#?\d+$/.test(wanted)) {
      const id = wanted.replace('#', '');
      this.blocks.id.forEach((other, row) => String(other) === id && rows.add(row));
      return rows;
    }
    const named = new Set();
    this.names.forEach((name, i) => name.toLowerCase().includes(wanted) && named.add(i));
    for (let row = 0; row < this.nBlocks; row++) {
      for (let i = this.accessFirst[row]; i < this.accessFirst[row + 1]; i++) {
        const exec = countBelow(this.execAt, Math.floor(this.access[i] / 4) % this.nEvents);
        if (named.has(this.execName[exec])) {
          rows.add(row);
          break;
        }
      }
    }
    return rows;
  }
}

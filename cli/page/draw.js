/* draw.js: one pane's canvas: the load, the arena below it, then the lanes, one time axis for all.
 *
 * Only what lies in the part shown is looked at. Rectangles are gathered by colour first: changing the colour costs
 * more than a rectangle does. */

const THIN = 0.6; // pixels

class Painter extends Lanes {
  constructor(pane) {
    super(pane);
    this.byColour = Array.from({ length: N_COLOURS + 1 }, () => []);
    this.nDrawn = 0;
  }

  draw(context, colours) {
    this.c = context;
    this.colours = colours;
    this.nDrawn = 0;
    this.prepare();
    context.fillStyle = colours.ground;
    context.fillRect(0, 0, this.g.width, this.g.height);
    context.font = FONT;
    context.textBaseline = 'middle';
    this.drawGrid();
    if (this.layout) {
      this.drawLoad();
      this.drawArena();
      this.drawLanes();
    }
    this.drawFrames();
    this.drawMarks();
  }

  /* ---- axes ---- */

  drawGrid() {
    const { g, colours } = this;
    const unit = this.unitOf(this.subject.arenaTop);
    const bytes = this.subject.arenaTop * (this.view.high - this.view.low);
    const step = niceStep(bytes / unit.bytes, 7) * unit.bytes;
    const low = this.subject.arenaTop * this.view.low;
    for (let at = Math.ceil(low / step) * step; at <= low + bytes; at += step) {
      const y = this.y(at);
      this.line(g.left, y, g.right, y, colours.grid);
      this.text(this.numberText(at / unit.bytes, step / unit.bytes), g.left - 8, y, colours.faint, 'right');
    }
    const loadStep = niceStep(this.subject.loadTop / unit.bytes, 4) * unit.bytes;
    for (let at = 0; at <= this.subject.loadTop; at += loadStep) {
      const y = this.yOfLoad(at);
      this.line(g.left, y, g.right, y, colours.grid);
      this.text(this.numberText(at / unit.bytes, loadStep / unit.bytes), g.left - 8, y, colours.faint, 'right');
    }
    this.upright(`load, ${unit.name}`, (g.load.top + g.load.bottom) / 2);
    this.upright(`address, ${unit.name}`, (g.arena.top + g.arena.bottom) / 2);
  }

  upright(text, y) {
    this.c.save();
    this.c.translate(11, y);
    this.c.rotate(-Math.PI / 2);
    this.text(text, 0, 0, this.colours.ink, 'center');
    this.c.restore();
  }

  unitOf(bytes) {
    return [[2e9, 1e9, 'GB'], [1e6, 1e6, 'MB'], [1e4, 1e3, 'kB'], [0, 1, 'bytes']]
      .map(([from, size, name]) => ({ from, bytes: size, name })).find(({ from }) => bytes >= from);
  }

  numberText(number, step) {
    return number.toFixed(Math.max(0, Math.min(6, -Math.floor(Math.log10(step) + 1e-9))));
  }

  drawFrames() {
    const { g, colours } = this;
    for (const { top, bottom } of [g.load, g.arena]) {
      this.line(g.left, top, g.left, bottom, colours.faint);
      this.line(g.left, bottom + 0.5, g.right, bottom + 0.5, colours.faint);
    }
    const units = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];
    const unit = this.isTime ? units.find(([size]) => this.span >= 2 * size || size === 1) : [1, 'events'];
    let step = niceStep((this.last - this.first) / unit[0], Math.max(5, (g.right - g.left) / 90)) * unit[0];
    step = this.isTime ? step : Math.max(1, step);
    this.nTicks = 0;
    for (let at = Math.ceil(this.first / step - 1e-9) * step; at <= this.last + step * 1e-6; at += step) {
      const x = this.x(at);
      this.nTicks++;
      this.line(x, g.axis, x, g.axis + 5, colours.faint);
      this.text(this.numberText(at / unit[0], step / unit[0]), x, g.axis + 14, colours.faint, 'center');
    }
    this.line(g.left, g.axis, g.right, g.axis, colours.faint);
    const nPeriods = this.layout ? this.layout.nPeriods : 1;
    const nIterations = nPeriods * Math.max(1, this.subject.iterations.length);
    const what = nPeriods > 1 ? `a round of ${nIterations} iterations` : this.subject.turn;
    const title = this.isTime ? `time of ${what}, ${unit[1]}` : `events of ${what}`;
    this.text(title, (g.left + g.right) / 2, g.axis + 33, colours.ink, 'center');
    this.drawTurns(nPeriods);
  }

  /* Where iterations meet, and the periods of a round. */
  drawTurns(nPeriods) {
    const { g, subject } = this;
    const begins = subject.iterations.length > 0 ? subject.iterations : [0];
    for (let lap = 0; this.layout && lap < nPeriods; lap++) {
      for (const event of begins) {
        const x = this.xOfBegin(event + lap * subject.nEvents);
        if (x > g.left + 1 && x < g.right) {
          this.line(x, g.load.top, x, g.axis, this.colours.faint, [2, 3]);
        }
      }
    }
  }

  /* ---- the load ---- */

  /* The steps shown; those that begin in one pixel are as high there as the highest, and go on as the last. */
  traceLoad({ x, y }) {
    const { c, g } = this;
    const from = Math.max(0, countBelow(x, this.first, true) - 1);
    const to = Math.min(x.length, countBelow(x, this.last) + 1);
    let at = Math.max(this.x(x[from] ?? 0), g.left);
    c.beginPath();
    c.moveTo(at, this.yOfLoad(0));
    for (let i = from; i < to;) {
      let highest = 0;
      let next = at;
      while (i < to && next < at + 1) {
        highest = Math.max(highest, y[i++]);
        next = i < x.length ? this.x(x[i]) : Infinity;
      }
      const end = Math.min(next, g.right);
      c.lineTo(at, this.yOfLoad(highest));
      c.lineTo(Math.min(at + 1, end), this.yOfLoad(highest));
      c.lineTo(Math.min(at + 1, end), this.yOfLoad(y[i - 1]));
      c.lineTo(end, this.yOfLoad(y[i - 1]));
      at = end;
    }
    c.lineTo(at, this.yOfLoad(0));
  }

  drawLoad() {
    const { c, g, colours, layout, subject } = this;
    const pool = subject.pool.layout;
    const clock = this.isTime ? layout.clock : null;
    this.clip(g.load.top, g.load.bottom, () => {
      this.traceLoad(layout.stepsBy(clock));
      c.closePath();
      c.fillStyle = colours.load;
      c.fill();
      const steadyY = this.yOfLoad(layout.steady);
      c.fillStyle = colours.always;
      const end = Math.min(g.right, this.x(this.isTime ? layout.clock.spanNs : layout.length));
      c.fillRect(g.left, steadyY, end - g.left, g.load.bottom - steadyY);
      if (!layout.isPool && pool.length === layout.length) {
        this.traceLoad(pool.stepsBy(clock)); // without swaps, at the plan's own times
        c.strokeStyle = colours.faint;
        c.lineWidth = 1;
        c.setLineDash([2, 2]);
        c.stroke();
        c.setLineDash([]);
      }
    });
    this.drawPeak();
  }

  /* A triangle that points at the peak. */
  drawPeak() {
    const { c, g, layout } = this;
    const at = layout.peakEvent;
    const x = (this.xOfBegin(at) + this.xOfEnd(at + 1)) / 2;
    const y = this.yOfLoad(layout.load[at]) - 2;
    if (x >= g.left && x <= g.right) {
      c.fillStyle = this.colours.ink;
      c.beginPath();
      c.moveTo(x, y);
      c.lineTo(x - 4, y - 7);
      c.lineTo(x + 4, y - 7);
      c.fill();
    }
  }

  /* ---- the arena ---- */

  drawArena() {
    const { g, layout, subject } = this;
    const { found } = this.pane;
    const lowest = subject.arenaTop * this.view.low;
    const highest = subject.arenaTop * this.view.high;
    this.labels = [];
    this.rows = new Map();
    for (const list of this.byColour) {
      list.length = 0;
    }
    layout.visit(this.fromEvent, this.toEvent, (i) => {
      if (layout.hi[i] > lowest && layout.lo[i] < highest) {
        this.byColour[this.pane.colourOf(layout.block[i])].push(i);
        this.nDrawn++;
      }
    });
    this.clip(g.arena.top, g.arena.bottom, () => {
      this.byColour.forEach((list, colour) => this.drawRects(list, colour, found));
      this.drawCopiesInArena();
      this.drawLabels();
    });
  }

  drawRects(list, colour, found) {
    const { c, g, layout, colours } = this;
    c.fillStyle = colour === N_COLOURS ? colours.always : colours.ramp[colour];
    for (const i of list) {
      const x0 = Math.max(this.xOfBegin(layout.begin[i]), g.left - 2);
      const x1 = Math.min(this.xOfRectEnd(i), g.right + 2);
      const y0 = Math.max(this.y(layout.hi[i]), g.arena.top - 2);
      const y1 = Math.min(this.y(layout.lo[i]), g.arena.bottom + 2);
      const width = x1 - x0;
      const height = y1 - y0;
      const isFound = !found || found.has(layout.block[i]);
      if (height < THIN && this.isCovered(x0, x1, y0, isFound)) {
        continue;
      }
      c.globalAlpha = isFound ? 1 : 0.13;
      /* A gap tells neighbours apart, but would swallow what is thinner than itself. */
      const gap = width > 3 && height > 3 ? 0.6 : 0;
      c.fillRect(x0, y0 + gap, Math.max(width - gap, 0.7), Math.max(height - gap, 0.5));
      if (width > 58 && height > 13 && isFound) {
        const y = (Math.max(y0, g.arena.top) + Math.min(y1, g.arena.bottom)) / 2;
        this.labels.push({ i, x: Math.max(x0, g.left) + 6, y, width, colour });
      }
    }
    c.globalAlpha = 1;
  }

  /* Of rectangles thinner than a pixel many fall into one row; one within the last drawn there adds nothing. */
  isCovered(x0, x1, y, isFound) {
    const row = Math.floor(y * 2) * 2 + (isFound ? 1 : 0);
    const last = this.rows.get(row);
    if (last && x0 >= last.x0 - 0.5 && x1 <= last.x1 + 0.5) {
      return true;
    }
    this.rows.set(row, { x0, x1 });
    return false;
  }

  drawLabels() {
    const { layout, subject, colours } = this;
    const isDark = document.documentElement.classList.contains('dark');
    for (const { i, x, y, width, colour } of this.labels) {
      const block = layout.block[i];
      const name = `#${subject.blocks.id[block]}`;
      const whole = `${name} · ${bytesText(subject.blocks.bytes[block])}`;
      const ink = colour === N_COLOURS ? colours.ink : colour < (isDark ? 9 : 14) ? '#ffffff' : '#1d1d22';
      this.text(width > 130 ? whole : name, x, y, ink);
    }
  }

  /* On their way: the memory is taken, the block is not there yet, or no more. */
  drawCopiesInArena() {
    const { c, colours } = this;
    for (const lane of ['out', 'in']) {
      c.fillStyle = colours[lane];
      this.visitCopies(lane, (copy, x0, x1) => {
        if (this.pane.found && !this.pane.found.has(copy.move.block)) {
          return;
        }
        for (const [lo, hi] of copy.move.places) {
          const top = this.y(hi);
          const height = this.y(lo) - top;
          const gap = height > 3 ? 0.6 : 0;
          c.fillRect(x0, top + gap, Math.max(x1 - x0, 0.7), Math.max(height - gap, 0.5));
        }
      });
    }
  }

  /* ---- lines with a name at the right ---- */

  drawMarks() {
    const { g, colours, subject, pane } = this;
    const { plan } = pane;
    const marks = [];
    const add = (name, bytes, colour, dash, width = 1.5) => marks.push({ name, bytes, colour, dash, width });
    if (plan.limit !== null) {
      add('limit', plan.limit, colours.limit, [7, 3]);
    }
    if (plan.exists) {
      add('footprint', plan.footprint, colours.footprint, []);
      if (plan.bound === plan.footprint) {
        marks[marks.length - 1].also = '= bound';
      } else {
        add('bound', plan.bound, colours.bound, [6, 5]);
      }
    }
    for (const { bytes, colour, dash, width } of marks) {
      const y = this.y(bytes);
      if (y >= g.arena.top - 1 && y <= g.arena.bottom) {
        this.line(g.left, y, g.right + 4, y, colour, dash, width);
      }
    }
    this.drawMarkLabels(marks);
    const load = [{ name: 'peak load', bytes: subject.peakLoad, colour: colours.ink, dash: [2, 3], width: 1 }];
    if (plan.limit !== null) {
      load.push({ name: 'limit', bytes: plan.limit, colour: colours.limit, dash: [7, 3], width: 1.5, isShort: true });
    }
    let free = g.load.top - 4;
    for (const mark of load) {
      const y = this.yOfLoad(mark.bytes);
      this.line(g.left, y, g.right + 4, y, mark.colour, mark.dash, mark.width);
      free = Math.max(free, y - 7);
      this.text(mark.name, g.right + 8, free + 7, mark.colour);
      if (!mark.isShort) {
        this.text(bytesText(mark.bytes), g.right + 8, free + 22, mark.colour);
      }
      free += mark.isShort ? 16 : 32;
    }
  }

  /* From the top down, each below the one before. */
  drawMarkLabels(marks) {
    const { g } = this;
    let free = g.arena.top - 8;
    const shown = marks.filter(({ bytes }) => this.y(bytes) >= g.arena.top - 1 && this.y(bytes) <= g.arena.bottom);
    for (const { name, bytes, colour, also } of shown.sort((a, b) => b.bytes - a.bytes)) {
      const top = Math.max(free, this.y(bytes) - 7);
      this.text(name, g.right + 8, top + 7, colour);
      this.text(bytesText(bytes), g.right + 8, top + 22, colour);
      if (also) {
        this.text(also, g.right + 8, top + 37, this.colours.bound);
      }
      free = top + (also ? 50 : 35);
    }
  }

  /* ---- what is pointed at, on a canvas of its own ---- */

  drawOver(context, colours) {
    this.c = context;
    this.colours = colours;
    this.prepare();
    const { g, pane } = this;
    context.clearRect(0, 0, g.width, g.height);
    if (!this.layout) {
      return;
    }
    for (const block of new Set([pane.held, pane.pointed.block])) {
      if (block !== null && block !== undefined) {
        this.clip(g.arena.top, g.arena.bottom, () => this.outline(block));
      }
    }
    if (pane.pointed.x !== undefined) {
      this.line(pane.pointed.x, g.load.top, pane.pointed.x, g.axis, colours.faint, [1, 2]);
    }
  }

  /* An access: seen on light blocks and on dark ones. */
  tick(x, y) {
    const { c, colours } = this;
    c.fillStyle = colours.ground;
    c.fillRect(x - 2, y - 8, 4, 8);
    c.fillStyle = colours.mark;
    c.fillRect(x - 1, y - 7, 2, 7);
  }

  outline(block) {
    const { c, layout, colours, subject } = this;
    const rects = layout.ofBlock.get(block) || [];
    c.strokeStyle = colours.mark;
    for (const i of rects) {
      const x0 = this.xOfBegin(layout.begin[i]);
      const y0 = this.y(layout.hi[i]);
      const height = Math.max(this.y(layout.lo[i]) - y0, 1);
      c.lineWidth = height > 6 ? 2 : 1;
      c.strokeRect(x0, y0, Math.max(this.xOfRectEnd(i) - x0, 1), height);
    }
    for (const { at } of subject.accessesOf(block)) {
      const event = at % subject.nEvents;
      for (const i of rects) {
        if (layout.begin[i] <= event && event < layout.end[i]) {
          this.tick((this.xOfBegin(event) + this.xOfEnd(event + 1)) / 2, this.y(layout.lo[i]));
        }
      }
    }
  }
}

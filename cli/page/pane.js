/* pane.js: one plan of one subject on the page: its figures, its canvas and what the pointer does there, its tables. */

/* As many pixels as the screen has; units stay CSS pixels. */
function fitCanvas(canvas, height = canvas.clientHeight) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return { context, width, height };
}

class Pane {
  constructor(app, subject, key) {
    this.app = app;
    this.subject = subject;
    this.view = app.view; // shared by all panes
    this.plan = subject.planOf(key);
    this.pointed = {};
    this.fingers = new Map(); // pointers that are down: where
    this.held = null; // a block
    this.found = null; // blocks searched for; null: no search
    this.painter = new Painter(this);
    this.curvePoints = [];
    this.drawMs = { last: 0, most: 0, n: 0 };
    this.colours = Uint8Array.from({ length: subject.nBlocks }, (_, block) => (
      subject.livesAlways(block) ? N_COLOURS : Math.round((1 - subject.lifeShare(block)) * (N_COLOURS - 1))));
    this.build();
    this.listen();
    this.setPlan(this.plan);
  }

  get axis() {
    return this.app.axis;
  }

  get hasCurve() {
    return this.subject.plans.some((plan) => plan.kind === 'limit');
  }

  colourOf(block) {
    return this.colours[block];
  }

  /* The whole time axis: of all panes that show the same subject, so that they can be compared. */
  span() {
    const length = (pane) => {
      const layout = pane.plan.exists ? pane.plan.layout : pane.subject.pool.layout;
      return this.axis === 'time' && layout.clock ? layout.clock.spanNs : layout.length;
    };
    return Math.max(1, ...this.app.panes.filter((pane) => pane.subject === this.subject).map(length), length(this));
  }

  /* ---- making ---- */

  build() {
    const { subject } = this;
    const facts = Object.entries(subject.meta).map(([key, value]) => `${key} ${value}`);
    facts.push(countText(subject.nEvents, 'event', 'events') + ' and '
      + countText(subject.nBlocks, 'block', 'blocks') + ' in ' + subject.turn);
    if (subject.hasTime) {
      facts.push(`${timeText(subject.iterationNs)} undisturbed`);
    }
    this.ownSlider = make('input', { type: 'range', min: '0', max: '0', 'aria-label': 'limit of this side' });
    this.ownText = make('output');
    this.own = make('div', { class: 'own', hidden: '' }, 'limit', this.ownSlider, this.ownText);
    this.none = make('p', { class: 'none', hidden: '' });
    this.cards = make('div', { class: 'cards' });
    this.curve = make('canvas', { class: 'curve', role: 'img', 'aria-label': 'overhead by limit' });
    this.canvas = make('canvas', { class: 'main', role: 'img', tabindex: '0', 'aria-label': 'load, arena and lanes over '
      + 'time. Keys: plus and minus zoom, arrows move, with Shift addresses are zoomed, 0 shows everything' });
    this.over = make('canvas', { class: 'over' });
    this.stage = make('div', { class: 'stage' }, this.canvas, this.over);
    this.tools = this.makeTools();
    this.legend = make('div', { class: 'legend' });
    this.heldBox = make('div', { class: 'held', hidden: '' });
    this.tables = make('div', { class: 'tables' });
    this.element = make('section', { class: 'pane' },
      make('h2', null, subject.name), make('p', { class: 'about' }, facts.join(' · ')), this.own, this.none,
      make('div', { class: this.hasCurve ? 'facts' : 'facts alone' }, this.cards, this.hasCurve ? this.curve : null),
      this.tools, this.stage, this.legend, this.heldBox, this.tables);
  }

  /* For a finger, and for a mouse without a wheel. */
  makeTools() {
    const { app } = this;
    const button = (text, label, action) => {
      const made = make('button', { type: 'button', title: label, 'aria-label': label }, text);
      made.addEventListener('click', action);
      return made;
    };
    return make('div', { class: 'tools', role: 'group', 'aria-label': 'zoom' },
      button('−', 'zoom out in time (-)', () => app.zoomBy(1 / ZOOM_STEP)),
      button('+', 'zoom in in time (+)', () => app.zoomBy(ZOOM_STEP)),
      button('←', 'earlier (left arrow)', () => app.moveBy(-MOVE_STEP)),
      button('→', 'later (right arrow)', () => app.moveBy(MOVE_STEP)),
      button('⤢', 'everything (0)', () => app.resetView()),
      make('span', { class: 'hint wheel' }, 'Ctrl and wheel zoom; after a click, the wheel alone'),
      make('span', { class: 'hint touch' }, 'two fingers zoom, one moves'));
  }

  fillLegend() {
    const { colours } = this.app;
    const item = (background, text, ramp) => make('span', null,
      make('i', { style: `background:${background}`, ...(ramp ? { class: 'ramp' } : {}) }), text);
    const ramp = `linear-gradient(to right, ${[...colours.ramp].reverse().join(',')})`;
    const items = [item(ramp, 'lives briefly … almost an iteration', true), item(colours.always, 'always there')];
    if (this.subject.hasTime) {
      items.push(item(colours.out, 'being copied out'), item(colours.in, 'being copied in'),
        item(colours.wait, 'compute waits'));
    }
    this.legend.replaceChildren(...items);
  }

  setPlan(plan) {
    this.plan = plan;
    this.none.hidden = plan.exists;
    this.none.textContent = plan.exists ? '' : `No plan: ${plan.reason}`;
    fillCards(this.cards, plan);
    this.tables.replaceChildren(...(plan.exists ? tablesOf(plan) : []));
    this.pointed = {};
    this.fillHeld();
    this.app.schedule();
  }

  /* ---- drawing ---- */

  resize() {
    this.geometry = geometryOf(this.canvas.clientWidth || 600, this.subject.hasTime);
  }

  draw() {
    const begin = performance.now();
    this.resize();
    const { context } = fitCanvas(this.canvas, this.geometry.height);
    this.painter.draw(context, this.app.colours);
    this.drawOver();
    const took = performance.now() - begin;
    this.drawMs = { last: took, most: Math.max(this.drawMs.most, took), n: this.drawMs.n + 1 };
    if (this.hasCurve) {
      drawCurve(this.curve, this, this.app.colours);
    }
  }

  drawOver() {
    const { context } = fitCanvas(this.over, this.geometry.height);
    this.painter.drawOver(context, this.app.colours);
  }

  /* ---- the pointer ---- */

  listen() {
    const { stage } = this;
    stage.addEventListener('wheel', (event) => this.onWheel(event), { passive: false });
    stage.addEventListener('pointerdown', (event) => this.onDown(event));
    stage.addEventListener('pointermove', (event) => this.onMove(event));
    stage.addEventListener('pointerup', (event) => this.onUp(event));
    stage.addEventListener('pointercancel', (event) => this.onCancel(event)); // the page scrolls: the finger is its own
    stage.addEventListener('pointerleave', () => this.point(null));
    this.canvas.addEventListener('keydown', (event) => this.onKey(event));
    stage.addEventListener('dblclick', () => this.app.resetView());
    this.ownSlider.addEventListener('input', () => this.app.setKey(this.app.stops[Number(this.ownSlider.value)], this));
    this.curve.addEventListener('click', (event) => this.onCurve(event));
    this.curve.addEventListener('pointermove', (event) => this.onCurveMove(event));
    this.curve.addEventListener('pointerleave', () => this.app.hideTip());
    this.tables.addEventListener('click', (event) => this.onRow(event.target.closest('tr[data-block]')));
    this.tables.addEventListener('keydown', (event) => {
      if (event.key === 'Enter') {
        this.onRow(event.target.closest('tr[data-block]'));
      }
    });
  }

  at(event) {
    const box = this.stage.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  /* The wheel is the page's, but for one with a key (a trackpad's pinch comes as Ctrl), or when the chart has the focus. */
  onWheel(event) {
    const isAsked = event.ctrlKey || event.metaKey || event.altKey || event.shiftKey;
    if (!isAsked && document.activeElement !== this.canvas) {
      this.app.forgetPointing();
      return;
    }
    event.preventDefault();
    const { x, y } = this.at(event);
    const { left, right, arena } = this.geometry;
    const delta = clamp((event.deltaY || event.deltaX) * (event.deltaMode === 1 ? 16 : 1), -400, 400);
    const factor = Math.exp(delta * 0.0016);
    if (event.shiftKey) {
      this.view.zoomAddress(factor, clamp((arena.bottom - y) / (arena.bottom - arena.top), 0, 1));
    } else {
      this.view.zoomTime(factor, clamp((x - left) / (right - left), 0, 1));
    }
    this.app.forgetPointing();
    this.app.schedule();
  }

  /* What the page's own keys do not know: addresses. */
  onKey(event) {
    const { view } = this;
    const actions = {
      ArrowUp: () => view.moveAddress(MOVE_STEP),
      ArrowDown: () => view.moveAddress(-MOVE_STEP),
      '+': event.shiftKey && event.code !== 'Equal' ? () => view.zoomAddress(ZOOM_STEP, 0.5) : null,
      '*': () => view.zoomAddress(ZOOM_STEP, 0.5),
      _: () => view.zoomAddress(1 / ZOOM_STEP, 0.5),
    };
    const action = event.ctrlKey || event.metaKey || event.altKey ? null : actions[event.key];
    if (action) {
      event.preventDefault();
      event.stopPropagation();
      action();
      this.app.forgetPointing();
      this.app.schedule();
    }
  }

  /* ---- one pointer moves, two zoom ---- */

  onDown(event) {
    const at = this.at(event);
    if (event.pointerType !== 'touch') {
      this.canvas.focus({ preventScroll: true });
    }
    this.fingers.set(event.pointerId, at);
    this.drag = { ...at, moved: this.fingers.size > 1 };
    try {
      this.stage.setPointerCapture(event.pointerId);
    } catch {
      /* a pointer that is gone already */
    }
  }

  onMove(event) {
    const { x, y } = this.at(event);
    if (!this.drag) {
      this.point({ x, y, clientX: event.clientX, clientY: event.clientY });
      return;
    }
    if (this.fingers.size > 1) {
      this.pinch(event.pointerId, { x, y });
      return;
    }
    const { left, right, arena } = this.geometry;
    if (!this.drag.moved && Math.hypot(x - this.drag.x, y - this.drag.y) < 4) {
      return;
    }
    this.drag.moved = true;
    this.stage.classList.add('grab');
    this.view.moveTime((this.drag.x - x) / (right - left));
    if (event.pointerType !== 'touch') { // there, up and down are the page's
      this.view.moveAddress((y - this.drag.y) / (arena.bottom - arena.top));
    }
    this.drag.x = x;
    this.drag.y = y;
    this.app.hideTip();
    this.app.schedule();
  }

  /* Time by how far apart the fingers are; what is between them stays there. */
  pinch(id, at) {
    const { left, right } = this.geometry;
    const of = () => [...this.fingers.values()].slice(0, 2).map(({ x }) => x);
    if (!this.fingers.has(id)) {
      return;
    }
    const before = of();
    this.fingers.set(id, at);
    const after = of();
    const width = ([a, b]) => Math.max(Math.abs(a - b), 20);
    const middle = ([a, b]) => (a + b) / 2;
    this.view.zoomTime(width(before) / width(after), clamp((middle(before) - left) / (right - left), 0, 1));
    this.view.moveTime((middle(before) - middle(after)) / (right - left));
    this.app.hideTip();
    this.app.schedule();
  }

  onUp(event) {
    const wasClick = this.drag && !this.drag.moved;
    this.endDrag(event);
    if (wasClick) {
      const { x, y } = this.at(event);
      const what = this.what(x, y);
      this.app.hold(this.subject, what.block === this.held ? null : what.block ?? null);
    }
  }

  onCancel(event) {
    this.endDrag(event);
    this.app.forgetPointing();
  }

  /* The finger that stays goes on as one that moves. */
  endDrag(event) {
    this.fingers.delete(event.pointerId);
    const [rest] = this.fingers.values();
    this.drag = rest ? { ...rest, moved: true } : null;
    this.stage.classList.toggle('grab', Boolean(rest));
  }

  /* The plan whose point is nearest, and how far that is. */
  nearestPlan(event) {
    const box = this.curve.getBoundingClientRect();
    const distance = (point) => Math.hypot(point.x - event.clientX + box.left, point.y - event.clientY + box.top);
    const [nearest] = [...this.curvePoints].sort((a, b) => distance(a) - distance(b));
    return nearest ? { plan: nearest.plan, distance: distance(nearest) } : { plan: null, distance: Infinity };
  }

  onCurveMove(event) {
    const { plan, distance } = this.nearestPlan(event);
    if (distance < 16) {
      this.app.showTip(planText(plan), event.clientX, event.clientY);
    } else {
      this.app.hideTip();
    }
  }

  onCurve(event) {
    const { plan } = this.nearestPlan(event);
    if (plan) {
      this.app.setKey(plan.key, this);
    }
  }

  onRow(row) {
    if (row) {
      this.app.hold(this.subject, Number(row.dataset.block));
      this.showBlock(Number(row.dataset.block));
    }
  }

  /* ---- what is where ---- */

  eventAt(x) {
    const { left, right } = this.geometry;
    const value = (this.view.from + (x - left) / (right - left) * (this.view.to - this.view.from)) * this.span();
    const { clock, length } = this.plan.layout;
    const event = this.axis === 'time' && clock ? clock.eventAt(value) : value;
    return { value, event: clamp(Math.floor(event), 0, length - 1), isInside: event < length && value >= 0 };
  }

  /* { block, i, lines, kind }: what a point of the canvas shows; empty where that is nothing. */
  what(x, y) {
    const { left, right, load, arena, lanes } = this.geometry;
    if (!this.plan.exists || x < left || x > right) {
      return {};
    }
    const { value, event, isInside } = this.eventAt(x);
    if (!isInside) {
      return {};
    }
    if (y >= load.top && y <= load.bottom) {
      const clock = this.axis === 'time' ? this.plan.layout.clock : null;
      return { kind: 'load', lines: loadText(this.plan, event, value, clock) };
    }
    if (y >= arena.top && y <= arena.bottom) {
      return this.whatBlock(event, y);
    }
    const lane = lanes.find(({ top, bottom }) => y >= top && y <= bottom);
    return lane ? this.whatInLane(lane.name, value, event) : {};
  }

  whatBlock(event, y) {
    const { arena } = this.geometry;
    const perPixel = this.subject.arenaTop * (this.view.high - this.view.low) / (arena.bottom - arena.top);
    const address = this.subject.arenaTop * this.view.low + (arena.bottom - y) * perPixel;
    for (const near of [0, -1, 1, -2, 2]) { // thin ones are hard to meet
      const i = this.plan.layout.hit(event, address + near * perPixel);
      if (i >= 0) {
        const block = this.plan.layout.block[i];
        return { kind: 'block', block, i, lines: blockText(this.plan, block, i) };
      }
    }
    return {};
  }

  whatInLane(name, value, event) {
    const { layout } = this.plan;
    const ns = this.axis === 'time' ? value % layout.clock.periodNs : layout.clock.beginNs[event];
    if (name === 'compute') {
      const k = countBelow(layout.execStart, ns, true) - 1;
      return k >= 0 && ns <= layout.execEnd[k] ? { kind: 'exec', lines: execText(this.plan, k) } : {};
    }
    const copy = layout.copies[name].find(({ start, end }) => start <= ns && ns < end);
    return copy ? { kind: 'copy', block: copy.move.block, lines: copyText(this.plan, copy) } : {};
  }

  forgetPointing() {
    this.pointed = {};
    if (this.geometry) {
      this.drawOver();
    }
  }

  point(at) {
    const what = at ? this.what(at.x, at.y) : {};
    const { left, right } = this.geometry || { left: 0, right: 0 };
    const isInside = at && at.x >= left && at.x <= right;
    this.pointed = { ...what, x: isInside ? at.x : undefined };
    if (what.lines) {
      this.app.showTip(what.lines, at.clientX, at.clientY);
    } else {
      this.app.hideTip();
    }
    this.stage.style.cursor = what.block !== undefined ? 'pointer' : 'default';
    for (const pane of this.app.panes) {
      if (pane !== this) { // the same block beside it
        pane.pointed = pane.subject === this.subject && what.block !== undefined ? { block: what.block } : {};
      }
      if (pane.geometry) {
        pane.drawOver();
      }
    }
  }

  /* ---- one block ---- */

  hold(block) {
    this.held = block;
    for (const row of this.tables.querySelectorAll('tr[data-block]')) {
      row.classList.toggle('on', Number(row.dataset.block) === block);
    }
    this.fillHeld();
  }

  fillHeld() {
    const isShown = this.held !== null && this.plan.exists;
    this.heldBox.hidden = !isShown;
    if (isShown) {
      const close = make('button', { type: 'button', 'aria-label': 'let go' }, '×');
      close.addEventListener('click', () => this.app.hold(this.subject, null));
      const [first] = this.plan.layout.ofBlock.get(this.held) || [-1];
      this.heldBox.replaceChildren(close, ...blockText(this.plan, this.held, first, 20));
    }
  }

  /* Where a block's rectangles are, as shares of the whole: [time, address]; null: nowhere. */
  boundsOf(block) {
    const { layout } = this.plan;
    const rects = layout.ofBlock.get(block);
    if (!rects) {
      return null;
    }
    const span = this.span();
    const isTime = this.axis === 'time' && layout.clock;
    const begin = Math.min(...rects.map((i) => (isTime ? layout.clock.beginNs[layout.begin[i]] : layout.begin[i])));
    const end = Math.max(...rects.map((i) => (isTime ? layout.clock.endNs[layout.end[i] - 1] : layout.end[i])));
    const lo = Math.min(...rects.map((i) => layout.lo[i]));
    const hi = Math.max(...rects.map((i) => layout.hi[i]));
    return [[begin / span, end / span], [lo / this.subject.arenaTop, hi / this.subject.arenaTop]];
  }

  showBlock(block) {
    const bounds = this.plan.exists ? this.boundsOf(block) : null;
    if (bounds) {
      this.view.show(...bounds);
      this.app.schedule();
    }
  }

  /* For tests: where on the screen a block is met, in CSS pixels of the window. */
  pointOf(block) {
    const { layout } = this.plan;
    const i = (layout.ofBlock.get(block) || [])[0];
    if (i === undefined) {
      return null;
    }
    this.painter.prepare();
    const box = this.stage.getBoundingClientRect();
    return { x: box.left + (this.painter.xOfBegin(layout.begin[i]) + this.painter.xOfEnd(layout.end[i])) / 2,
      y: box.top + (this.painter.y(layout.lo[i]) + this.painter.y(layout.hi[i])) / 2 };
  }
}

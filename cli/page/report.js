/* report.js: the page: its panes, the controls they share, and what a test can ask. */

const ZOOM_STEP = 0.7;
const MOVE_STEP = 0.2;

class App {
  constructor(data) {
    this.data = data;
    this.subjects = data.subjects.map((raw) => new Subject(raw));
    this.view = new View();
    this.panes = [];
    this.isOwn = false; // each pane has its own limit
    this.axis = this.subjects.some((subject) => subject.hasTime) ? 'time' : 'events';
    this.theme = 'auto';
    this.search = { text: '', at: 0 };
    this.scheduled = false;
    this.makeStops();
    this.readHash();
    this.setTheme(this.theme);
    this.makePanes();
    this.listen();
    this.fillControls();
    byId('made').textContent = `Made by neap ${data.version}. ${this.links().join('; ')}`
      + `${data.slower !== 1 ? `; a GPU ${data.slower} times slower` : ''}. `
      + 'Overheads are simulated. A block that swaps are planned for needs memory from its first use to its last.';
    document.title = `${[...new Set(data.panes.map((i) => this.subjects[i].name))].join(' and ')} · neap report`;
  }

  /* One, where all have the same. */
  links() {
    const texts = this.data.subjects.map(({ link }) => `${link.name}: ${link.out_gbs} GB/s out, ${link.in_gbs} in`);
    return new Set(texts).size === 1 ? [`Link ${texts[0]}`]
      : texts.map((text, i) => `Link of ${this.data.subjects[i].name} ${text}`);
  }

  /* ---- making ---- */

  /* The slider's stops, from the lowest limit to none: those of all subjects. */
  makeStops() {
    const share = new Map();
    for (const subject of this.subjects) {
      for (const plan of subject.plans) {
        if (!share.has(plan.key)) {
          share.set(plan.key, plan.share);
        }
      }
    }
    this.stops = [...share.keys()].sort((a, b) => share.get(a) - share.get(b));
    this.key = this.stops.includes('free') ? 'free' : 'pool';
    this.isBeside = this.data.panes.length > 1;
  }

  /* page.html#limit=70&axis=events&beside=1&theme=dark&find=184 */
  readHash() {
    const wanted = new URLSearchParams(location.hash.slice(1));
    const limit = wanted.get('limit') === 'none' ? 'pool' : wanted.get('limit');
    const distance = (stop) => Math.abs(Number(stop) - Number(limit));
    const nearest = this.stops.filter((stop) => distance(stop) >= 0).sort((a, b) => distance(a) - distance(b))[0];
    if (limit) {
      this.key = this.stops.includes(limit) ? limit : nearest ?? this.key;
    }
    if (['time', 'events'].includes(wanted.get('axis')) && this.axis === 'time') {
      this.axis = wanted.get('axis');
    }
    if (['light', 'dark'].includes(wanted.get('theme'))) {
      this.theme = wanted.get('theme');
    }
    this.isBeside = this.isBeside || wanted.get('beside') === '1';
    this.search.text = wanted.get('find') ?? '';
  }

  /* One trace beside itself: without a limit at the left, and each side has its own. */
  makePanes() {
    const shown = this.data.panes.map((i) => this.subjects[i]);
    const subjects = this.isBeside ? [shown[0], shown[1] ?? shown[0]] : [shown[0]];
    const isSame = subjects.length > 1 && subjects[0] === subjects[1];
    this.isOwn = isSame;
    this.panes = [];
    subjects.forEach((subject, i) => this.panes.push(new Pane(this, subject, isSame && i === 0 ? 'pool' : this.key)));
    byId('panes').classList.toggle('two', subjects.length > 1);
    byId('panes').replaceChildren(...this.panes.map((pane) => pane.element));
    this.observer?.disconnect();
    this.observer = new ResizeObserver(() => this.schedule());
    this.panes.forEach((pane) => this.observer.observe(pane.stage));
    this.find(this.search.text);
  }

  fillControls() {
    const slider = byId('limit');
    slider.max = String(this.stops.length - 1);
    byId('limit-stops').replaceChildren(...this.stops.map((_, i) => make('option', { value: String(i) })));
    byId('axis-control').hidden = !this.subjects.some((subject) => subject.hasTime);
    byId('search').value = this.search.text;
    for (const pane of this.panes) {
      pane.ownSlider.max = slider.max;
      pane.fillLegend();
    }
    this.showKeys();
  }

  /* What was pointed at is elsewhere now, or not there any more. */
  forgetPointing() {
    this.hideTip();
    this.panes.forEach((pane) => pane.forgetPointing());
  }

  /* ---- the limit ---- */

  setKey(key, pane = null) {
    this.forgetPointing();
    if (pane && this.isOwn) {
      pane.setPlan(pane.subject.planOf(key));
    } else {
      this.key = key;
      this.panes.forEach((each) => each.setPlan(each.subject.planOf(key)));
    }
    this.showKeys();
  }

  keyText(key) {
    const labels = new Set(this.panes.map((pane) => pane.subject.planOf(key).label));
    if (labels.size === 1) {
      return [...labels][0];
    }
    return key === 'pool' ? 'none' : key === 'free' ? 'no slowdown' : `${key}${SPACE}% of the peak load`;
  }

  showKeys() {
    const isBeside = this.panes.length > 1;
    byId('limit').value = String(this.stops.indexOf(this.key));
    byId('limit-control').hidden = this.isOwn || this.stops.length < 2;
    byId('limit-text').textContent = this.keyText(this.key);
    byId('limit').setAttribute('aria-valuetext', byId('limit-text').textContent);
    byId('beside').setAttribute('aria-pressed', String(isBeside));
    byId('beside').hidden = this.data.panes.length > 1 || this.stops.length < 2;
    byId('own').setAttribute('aria-pressed', String(this.isOwn));
    byId('own').hidden = !isBeside || this.stops.length < 2;
    for (const button of byId('axis-control').children) {
      button.setAttribute('aria-pressed', String(button.dataset.axis === this.axis));
    }
    for (const pane of this.panes) {
      pane.own.hidden = !this.isOwn;
      pane.ownSlider.value = String(this.stops.indexOf(pane.plan.key));
      pane.ownText.textContent = pane.plan.label;
    }
    this.schedule();
  }

  /* One stop down or up, of all panes. */
  step(by) {
    for (const pane of this.isOwn ? this.panes : [null]) {
      const at = this.stops.indexOf(pane ? pane.plan.key : this.key);
      this.setKey(this.stops[clamp(at + by, 0, this.stops.length - 1)], pane);
    }
  }

  /* ---- the other controls ---- */

  setTheme(theme) {
    const isDark = theme === 'dark' || (theme === 'auto' && matchMedia('(prefers-color-scheme: dark)').matches);
    this.theme = theme;
    document.documentElement.classList.toggle('dark', isDark);
    document.documentElement.style.colorScheme = isDark ? 'dark' : 'light';
    this.colours = readColours();
    this.panes.forEach((pane) => pane.fillLegend());
    this.schedule();
  }

  setAxis(axis) {
    this.forgetPointing();
    this.axis = axis;
    this.view.reset();
    this.showKeys();
  }

  resetView() {
    this.forgetPointing();
    this.view.reset();
    this.schedule();
  }

  /* Addresses up to the highest footprint shown. */
  fitAddresses() {
    this.forgetPointing();
    const used = this.panes.filter((pane) => pane.plan.exists)
      .map((pane) => Math.max(pane.plan.footprint, pane.plan.limit ?? 0) * 1.03 / pane.subject.arenaTop);
    this.view.low = 0;
    this.view.high = Math.min(1, Math.max(...used, LEAST_ADDRESS));
    this.schedule();
  }

  find(text) {
    this.forgetPointing();
    this.search = { text, at: -1 };
    let n = 0;
    for (const pane of this.panes) {
      const found = pane.subject.find(text);
      pane.found = text.trim() ? found : null;
      n += found.size;
    }
    byId('search-text').textContent = text.trim() ? countText(n, 'block', 'blocks') : '';
    this.schedule();
  }

  /* The next of what was found, the largest first, zoomed in on. */
  findNext() {
    const pane = this.panes.find((each) => each.found && each.found.size > 0);
    this.forgetPointing();
    if (pane) {
      const list = [...pane.found].sort((a, b) => pane.subject.blocks.bytes[b] - pane.subject.blocks.bytes[a]);
      this.search.at = (this.search.at + 1) % list.length;
      this.hold(pane.subject, list[this.search.at]);
      pane.showBlock(list[this.search.at]);
    }
  }

  /* By a button or a key, around the middle: below 1 nearer, above it farther. */
  zoomBy(factor) {
    this.forgetPointing();
    this.view.zoomTime(factor, 0.5);
    this.schedule();
  }

  moveBy(share) {
    this.forgetPointing();
    this.view.moveTime(share);
    this.schedule();
  }

  hold(subject, block) {
    for (const pane of this.panes) {
      pane.hold(pane.subject === subject ? block : null);
    }
    this.schedule();
  }

  listen() {
    byId('limit').addEventListener('input', (event) => this.setKey(this.stops[Number(event.target.value)]));
    for (const button of byId('axis-control').children) {
      button.addEventListener('click', () => this.setAxis(button.dataset.axis));
    }
    byId('search').addEventListener('input', (event) => this.find(event.target.value));
    byId('search').addEventListener('keydown', (event) => event.key === 'Enter' && this.findNext());
    byId('reset').addEventListener('click', () => this.resetView());
    byId('fit').addEventListener('click', () => this.fitAddresses());
    byId('beside').addEventListener('click', () => {
      this.isBeside = this.panes.length === 1;
      this.makePanes();
      this.fillControls();
    });
    byId('own').addEventListener('click', () => {
      this.isOwn = !this.isOwn;
      this.setKey(this.key);
    });
    byId('theme').addEventListener('click', () => {
      const isDark = document.documentElement.classList.contains('dark');
      this.setTheme(isDark ? 'light' : 'dark');
    });
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.setTheme(this.theme));
    document.addEventListener('keydown', (event) => this.onKey(event));
    window.addEventListener('resize', () => this.schedule());
    window.addEventListener('scroll', () => this.hideTip(), { passive: true });
  }

  onKey(event) {
    if (event.target.closest?.('input') || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const actions = {
      '+': () => this.zoomBy(ZOOM_STEP),
      '=': () => this.zoomBy(ZOOM_STEP),
      '-': () => this.zoomBy(1 / ZOOM_STEP),
      ArrowLeft: () => this.moveBy(-MOVE_STEP),
      ArrowRight: () => this.moveBy(MOVE_STEP),
      0: () => this.resetView(),
      f: () => this.fitAddresses(),
      '[': () => this.step(-1),
      ']': () => this.step(1),
      '/': () => byId('search').focus(),
      Escape: () => this.letGo(),
    };
    const action = actions[event.key];
    if (action) {
      event.preventDefault();
      action();
      this.schedule();
    }
  }

  /* Of the block that is held, and of the chart: the wheel is the page's again. */
  letGo() {
    this.forgetPointing();
    this.subjects.forEach((subject) => this.hold(subject, null));
    this.panes.forEach((pane) => pane.canvas.blur());
  }

  /* ---- the tip ---- */

  showTip(lines, x, y) {
    const tip = byId('tip');
    tip.replaceChildren(...lines);
    tip.hidden = false;
    const { offsetWidth, offsetHeight } = tip;
    tip.style.left = `${clamp(x + 16, 4, Math.max(4, innerWidth - offsetWidth - 8))}px`;
    tip.style.top = `${y + 18 + offsetHeight > innerHeight ? Math.max(4, y - offsetHeight - 12) : y + 18}px`;
  }

  hideTip() {
    byId('tip').hidden = true;
  }

  /* ---- drawing ---- */

  schedule() {
    if (!this.scheduled) {
      this.scheduled = true;
      requestAnimationFrame(() => {
        this.scheduled = false;
        this.panes.forEach((pane) => pane.draw());
      });
    }
  }

  /* ---- for tests ---- */

  state() {
    return {
      axis: this.axis,
      view: { from: this.view.from, to: this.view.to, low: this.view.low, high: this.view.high },
      stops: this.stops,
      limitText: byId('limit-text').textContent,
      found: byId('search-text').textContent,
      tip: byId('tip').hidden ? '' : byId('tip').innerText,
      isDrawn: !this.scheduled,
      panes: this.panes.map((pane) => ({ ...this.stateOf(pane), ...this.layoutOf(pane) })),
    };
  }

  stateOf(pane) {
    return {
      name: pane.subject.name,
      key: pane.plan.key,
      exists: pane.plan.exists,
      cards: Object.fromEntries([...pane.cards.children].map((card) => [card.dataset.key, card.dataset.value])),
      nDrawn: pane.painter.nDrawn,
      nTicks: pane.painter.nTicks,
      pointed: pane.pointed.block === undefined ? null : pane.subject.blocks.id[pane.pointed.block],
      held: pane.held === null ? null : pane.subject.blocks.id[pane.held],
      drawMs: pane.drawMs,
    };
  }

  layoutOf(pane) {
    if (!pane.plan.exists) {
      return {};
    }
    const { n, load, peakEvent, hi, copies } = pane.plan.layout;
    return {
      nRects: n,
      load: load[peakEvent],
      highest: hi.reduce((most, each) => Math.max(most, each), 0),
      copies: { out: copies.out.length, in: copies.in.length },
    };
  }

  /* Draws n frames while zooming in and out, each pushed out of the browser's queue by reading a pixel: ms a frame. */
  measure(n) {
    const times = [];
    for (let i = 0; i < n; i++) {
      this.view.zoomTime(i < n / 2 ? 0.9 : 1 / 0.9, 0.4);
      const begin = performance.now();
      for (const pane of this.panes) {
        pane.draw();
        pane.canvas.getContext('2d').getImageData(0, 0, 1, 1);
      }
      times.push(performance.now() - begin);
    }
    this.view.reset();
    this.schedule();
    times.sort((a, b) => a - b);
    return { median: times[n >> 1], most: times[n - 1] };
  }

  /* Pairs of rectangles that share a byte at one time: there must be none. */
  countOverlaps(index) {
    const { layout } = this.panes[index].plan;
    let n = 0;
    for (let i = 0; i < layout.n; i++) {
      layout.visit(layout.begin[i], layout.end[i], (k) => {
        if (k > i && layout.lo[i] < layout.hi[k] && layout.lo[k] < layout.hi[i]) {
          n++;
        }
      });
    }
    return n;
  }
}

const app = new App(JSON.parse(byId('data').textContent));
window.neapReport = {
  state: () => app.state(),
  measure: (n) => app.measure(n),
  countOverlaps: (pane) => app.countOverlaps(pane),
  pointOf: (pane, id) => app.panes[pane].pointOf(app.panes[pane].subject.blocks.id.indexOf(id)),
};

/* scales.js: what every part of a pane's canvas needs: colours, where things stand, pixels of times and bytes. */

const RAMP_LIGHT = [[68, 4, 87], [62, 74, 137], [38, 130, 142], [53, 183, 121], [170, 220, 50], [250, 228, 60]];
const RAMP_DARK = [[128, 84, 176], [98, 118, 196], [60, 152, 168], [64, 190, 128], [170, 220, 50], [250, 228, 60]];
const N_COLOURS = 24;
const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

/* From long lives (dark) to short ones (light). */
function rampColours(ramp) {
  return Array.from({ length: N_COLOURS }, (_, i) => {
    const at = i / (N_COLOURS - 1) * (ramp.length - 1);
    const k = Math.min(Math.floor(at), ramp.length - 2);
    return `rgb(${ramp[k].map((c, n) => Math.round(c + (at - k) * (ramp[k + 1][n] - c))).join(' ')})`;
  });
}

/* The theme's colours, for canvases. */
function readColours() {
  const style = getComputedStyle(document.documentElement);
  const names = ['ground', 'panel', 'edge', 'grid', 'ink', 'faint', 'always', 'load', 'load-edge', 'footprint', 'bound',
    'limit', 'compute', 'out', 'in', 'wait', 'mark'];
  const colours = Object.fromEntries(names.map((name) => [name, style.getPropertyValue('--' + name).trim()]));
  colours.ramp = rampColours(document.documentElement.classList.contains('dark') ? RAMP_DARK : RAMP_LIGHT);
  return colours;
}

/* Where things stand on a canvas of some width, in CSS pixels. */
function geometryOf(width, hasTime) {
  const isNarrow = width < 560; // a telephone
  const left = isNarrow ? 50 : 64;
  const right = Math.max(left + 80, width - (isNarrow ? 66 : 104));
  const load = { top: 12, bottom: 112 };
  const arena = { top: 134, bottom: 514 };
  const names = hasTime ? ['compute', 'out', 'in'] : [];
  const lanes = names.map((name, i) => ({ name, top: 526 + i * 23, bottom: 544 + i * 23 }));
  const bottom = hasTime ? lanes[2].bottom : arena.bottom;
  return { width, left, right, load, arena, lanes, axis: bottom + 8, height: bottom + 50 };
}

class Scales {
  constructor(pane) {
    this.pane = pane;
  }

  prepare() {
    const { pane } = this;
    this.layout = pane.plan.exists ? pane.plan.layout : null;
    this.subject = pane.subject;
    this.view = pane.view;
    this.g = pane.geometry;
    this.isTime = pane.axis === 'time' && this.subject.hasTime;
    this.span = pane.span();
    this.scale = (this.g.right - this.g.left) / ((this.view.to - this.view.from) * this.span);
    this.first = this.view.from * this.span;
    this.last = this.view.to * this.span;
    const clock = this.layout && this.layout.clock;
    this.fromEvent = this.isTime && clock ? Math.floor(clock.eventAt(this.first)) : Math.floor(this.first);
    this.toEvent = this.isTime && clock ? Math.ceil(clock.eventAt(this.last)) + 1 : Math.ceil(this.last);
  }

  /* Of a time in the axis's unit: ns, or events. */
  x(value) {
    return this.g.left + (value - this.first) * this.scale;
  }

  xOfBegin(event) {
    return this.x(this.isTime ? this.layout.clock.beginNs[event] : event);
  }

  xOfEnd(event) {
    return this.x(this.isTime ? this.layout.clock.endNs[event - 1] : event);
  }

  xOfRectEnd(i) {
    return this.x(this.isTime ? this.layout.endNs(i) : this.layout.end[i]);
  }

  xOfNs(ns) {
    return this.x(this.isTime ? ns : this.layout.clock.eventAt(ns));
  }

  y(bytes) {
    const { top, bottom } = this.g.arena;
    const share = (bytes / this.subject.arenaTop - this.view.low) / (this.view.high - this.view.low);
    return bottom - share * (bottom - top);
  }

  yOfLoad(bytes) {
    const { top, bottom } = this.g.load;
    return bottom - bytes / (this.subject.loadTop) * (bottom - top);
  }

  /* ---- strokes ---- */

  text(text, x, y, colour, align = 'left') {
    this.c.fillStyle = colour;
    this.c.textAlign = align;
    this.c.fillText(text, x, y);
  }

  line(x1, y1, x2, y2, colour, dash = [], width = 1) {
    this.c.strokeStyle = colour;
    this.c.lineWidth = width;
    this.c.setLineDash(dash);
    this.c.beginPath();
    this.c.moveTo(x1, y1);
    this.c.lineTo(x2, y2);
    this.c.stroke();
    this.c.setLineDash([]);
  }

  clip(top, bottom, draw) {
    this.c.save();
    this.c.beginPath();
    this.c.rect(this.g.left, top, this.g.right - this.g.left, bottom - top);
    this.c.clip();
    draw();
    this.c.restore();
  }
}

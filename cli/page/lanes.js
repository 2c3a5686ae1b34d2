/* lanes.js: below the arena, what the device does: execs, copies out, copies in. */

class Lanes extends Scales {
  visitCopies(lane, call) {
    const { g, layout } = this;
    if (!layout.clock) {
      return;
    }
    for (const copy of layout.copies[lane]) {
      const x0 = this.xOfNs(copy.start);
      const x1 = this.xOfNs(copy.end);
      if (x1 > g.left && x0 < g.right) {
        call(copy, x0, x1);
      }
    }
  }

  drawLanes() {
    const { g, colours } = this;
    for (const { name, top, bottom } of g.lanes) {
      this.c.fillStyle = colours.panel;
      this.c.fillRect(g.left, top, g.right - g.left, bottom - top);
      const isCompute = name === 'compute';
      this.clip(top, bottom, () => (isCompute ? this.drawCompute(top, bottom) : this.drawCopies(name, top, bottom)));
      this.text(isCompute || g.left < 64 ? (isCompute && g.left < 64 ? 'exec' : name) : `copy ${name}`, g.left - 8, (top + bottom) / 2, colours.faint, 'right');
    }
  }

  /* Bars in order; short ones that touch on the screen are drawn as one. A long one may have a name. */
  startBars(colour, ink, top, bottom) {
    const { c, g } = this;
    let run = null;
    const flush = () => {
      if (run) {
        c.fillStyle = colour;
        c.fillRect(run.x0, top, Math.max(run.x1 - run.x0, 0.7), bottom - top);
      }
      run = null;
    };
    const add = (x0, x1, name) => {
      if (run && x0 - run.x1 < 0.6 && x1 - x0 < 3) {
        run.x1 = Math.max(run.x1, x1);
        return;
      }
      flush();
      run = { x0, x1: x1 - (x1 - x0 > 3 ? 0.7 : 0) };
      if (x1 - x0 > 40) {
        flush();
        const shown = shorten(name(), Math.floor((x1 - x0 - 8) / 7));
        this.text(shown, Math.max(x0, g.left) + 4, (top + bottom) / 2, ink);
      }
    };
    return { add, flush };
  }

  /* Waits for copies or memory stand out. */
  drawCompute(top, bottom) {
    const { subject } = this;
    const bars = this.startBars(this.colours.compute, '#ffffff', top, bottom);
    this.visitExecs((k, x0, x1, shift) => {
      this.drawWait(k, shift, top, bottom);
      bars.add(x0, x1, () => subject.names[subject.execName[k]]);
    });
    bars.flush();
  }

  /* Of all periods of the round: the exec's row, its place, and when its period begins. */
  visitExecs(call) {
    const { g, layout, subject } = this;
    for (let lap = 0; lap < layout.nPeriods; lap++) {
      const shift = lap * layout.clock.periodNs;
      const before = this.fromEvent - lap * subject.nEvents;
      for (let k = Math.max(0, countBelow(subject.execAt, before) - 1); k < subject.execAt.length; k++) {
        const event = subject.execAt[k] + lap * subject.nEvents;
        const x0 = this.xOfBegin(event);
        if (x0 > g.right) {
          break;
        }
        call(k, x0, this.xOfEnd(event + 1), shift);
      }
    }
  }

  drawWait(k, shift, top, bottom) {
    const { layout, c } = this;
    const before = (k > 0 ? layout.execEnd[k - 1] : 0) + layout.pauseNs;
    if (!this.isTime || layout.execStart[k] - before < layout.pauseNs * 0.01 + 20) {
      return;
    }
    const x0 = this.x(before + shift);
    const x1 = this.x(layout.execStart[k] + shift);
    c.fillStyle = this.colours.wait;
    c.fillRect(x0, top, Math.max(x1 - x0, 0.7), bottom - top);
  }

  drawCopies(lane, top, bottom) {
    const { subject } = this;
    const bars = this.startBars(this.colours[lane], '#1d1d22', top, bottom);
    this.visitCopies(lane, (copy, x0, x1) => bars.add(x0, x1, () => `#${subject.blocks.id[copy.move.block]}`));
    bars.flush();
  }
}

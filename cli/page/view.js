/* view.js: which part of time and of the arena is shown, as shares of the whole, so that panes can share it. */

const LEAST_TIME = 1e-5;
const LEAST_ADDRESS = 1e-4;

class View {
  constructor() {
    this.reset();
  }

  reset() {
    this.from = 0; // time
    this.to = 1;
    this.low = 0; // addresses
    this.high = 1;
  }

  /* What is at `share` of the part shown stays there. */
  zoomTime(factor, share) {
    [this.from, this.to] = zoomed(this.from, this.to, factor, share, LEAST_TIME);
  }

  zoomAddress(factor, share) {
    [this.low, this.high] = zoomed(this.low, this.high, factor, share, LEAST_ADDRESS);
  }

  /* By shares of the part shown. */
  moveTime(share) {
    [this.from, this.to] = moved(this.from, this.to, share);
  }

  moveAddress(share) {
    [this.low, this.high] = moved(this.low, this.high, share);
  }

  /* Both as [begin, end] in shares of the whole, with room around. */
  show(time, address) {
    [this.from, this.to] = around(time, 0.6, LEAST_TIME);
    [this.low, this.high] = around(address, 1.5, LEAST_ADDRESS);
  }
}

function zoomed(begin, end, factor, share, least) {
  const length = clamp((end - begin) * factor, least, 1);
  const at = begin + (end - begin) * share;
  const first = clamp(at - length * share, 0, 1 - length);
  return [first, first + length];
}

function moved(begin, end, share) {
  const length = end - begin;
  const first = clamp(begin + length * share, 0, 1 - length);
  return [first, first + length];
}

function around([begin, end], room, least) {
  const length = clamp((end - begin) * (1 + 2 * room), least, 1);
  const first = clamp((begin + end) / 2 - length / 2, 0, 1 - length);
  return [first, first + length];
}

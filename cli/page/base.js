/* base.js: numbers as people read them, elements, and searching in sorted lists. */

const SPACE = '\u00a0'; // a number and its unit stay together

/* 503.8 MB: decimal units, as in the command's tables. */
function bytesText(bytes) {
  if (bytes >= 1e9) {
    return (bytes / 1e9).toFixed(2) + SPACE + 'GB';
  }
  if (bytes >= 1e5) {
    return (bytes / 1e6).toFixed(bytes < 1e7 ? 2 : 1) + SPACE + 'MB';
  }
  return bytes >= 1e3 ? (bytes / 1e3).toFixed(1) + SPACE + 'kB' : bytes + SPACE + 'B';
}

function timeText(ns) {
  const units = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];
  const [size, name] = units.find(([least]) => Math.abs(ns) >= least) || units[3];
  return (ns / size).toFixed(size === 1 ? 0 : 2) + SPACE + name;
}

function shareText(share) {
  if (share === 0) {
    return '0' + SPACE + '%';
  }
  return (share * 100).toFixed(share !== 0 && Math.abs(share) < 0.1 ? 2 : 1) + SPACE + '%';
}

function countText(count, one, many) {
  return count.toLocaleString('en-US') + SPACE + (count === 1 ? one : many);
}

function shorten(text, most) {
  return text.length > most ? text.slice(0, most - 1) + '…' : text;
}

/* "184" is no size; ">10MB" and "<=512 KiB" are: { compare, bytes }. */
function parseSize(text) {
  const found = /^\s*([<>])=?\s*([0-9.]+)\s*([kmgt]?)(i?)b?\s*$/i.exec(text);
  if (!found || !Number.isFinite(Number(found[2]))) {
    return null;
  }
  const power = ['', 'k', 'm', 'g', 't'].indexOf(found[3].toLowerCase());
  return { compare: found[1], bytes: Number(found[2]) * (found[4] ? 1024 : 1000) ** power };
}

/* The step of an axis that shows `range` in about n steps: 1, 2 or 5 times a power of ten. */
function niceStep(range, n) {
  const rough = Math.max(range, 1e-12) / Math.max(1, n); // never 0: no axis goes on for ever
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
}

/* How many leading items of a sorted list are below (or at, with `too`) a value. */
function countBelow(list, value, too = false) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] < value || (too && list[middle] === value)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

function clamp(value, low, high) {
  return Math.min(Math.max(value, low), high);
}

/* make('p', { class: 'x' }, 'text', child...): text is only ever text, never markup. */
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function byId(id) {
  return document.getElementById(id);
}

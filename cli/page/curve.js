/* curve.js: overhead over limits, a point for each plan, beside the bound that no plan of swaps can beat. */

/* Limits without a plan stand above the others. */
function drawCurve(canvas, pane, colours) {
  const { context, width, height } = fitCanvas(canvas);
  const plans = pane.subject.plans.filter((plan) => plan.kind !== 'pool');
  const known = plans.filter((plan) => plan.exists);
  const box = { left: 46, right: width - 16, top: 22, bottom: height - 32 };
  const shares = plans.map((plan) => plan.share);
  const low = Math.floor(Math.min(...shares, 0.9) * 20) / 20;
  const most = Math.max(0.05, ...known.map((plan) => plan.overhead)) * 1.3;
  const x = (share) => box.left + (share - low) / (1 - low) * (box.right - box.left);
  const y = (overhead) => box.bottom - overhead / most * (box.bottom - box.top);
  context.clearRect(0, 0, width, height);
  context.font = FONT;
  context.textBaseline = 'middle';
  const say = (text, tx, ty, colour, align) => {
    context.fillStyle = colour;
    context.textAlign = align;
    context.fillText(text, tx, ty);
  };
  say('overhead by limit', box.left, 8, colours.ink, 'left');
  say('plan', box.right - 62, 8, colours.footprint, 'right');
  say('- - bound', box.right, 8, colours.bound, 'right');
  say('limit, % of the peak load', (box.left + box.right) / 2, height - 7, colours.faint, 'center');
  const step = niceStep(most, 3);
  for (let at = 0; at <= most; at += step) {
    context.fillStyle = colours.grid;
    context.fillRect(box.left, y(at), box.right - box.left, 1);
    say(`${(at * 100).toFixed(step < 0.01 ? 1 : 0)} %`, box.left - 6, y(at), colours.faint, 'right');
  }
  const across = niceStep((1 - low) * 100, 6);
  for (let at = Math.ceil(low * 100 / across - 1e-9) * across; at <= 100; at += across) {
    say(String(at), x(at / 100), box.bottom + 12, colours.faint, 'center');
  }
  const line = (value, colour, dash) => {
    context.strokeStyle = colour;
    context.lineWidth = 1.5;
    context.setLineDash(dash);
    context.beginPath();
    known.filter((plan) => plan.kind === 'limit').forEach((plan) => context.lineTo(x(plan.share), y(value(plan))));
    context.lineTo(x(1), y(0));
    context.stroke();
    context.setLineDash([]);
  };
  line((plan) => plan.boundOverhead, colours.bound, [4, 3]);
  line((plan) => plan.overhead, colours.footprint, []);
  pane.curvePoints = plans.map((plan) => ({ plan, x: x(plan.share), y: plan.exists ? y(plan.overhead) : box.top }));
  const missing = pane.curvePoints.filter(({ plan }) => !plan.exists);
  if (missing.length > 0) {
    say('no plan', missing[missing.length - 1].x + 8, box.top, colours.faint, 'left');
  }
  for (const { plan, x: px, y: py } of pane.curvePoints) {
    context.beginPath();
    context.arc(px, py, plan === pane.plan ? 5.5 : 3.2, 0, 7);
    context.fillStyle = plan.exists ? (plan.kind === 'free' ? colours.in : colours.footprint) : colours.ground;
    context.fill();
    context.strokeStyle = plan === pane.plan ? colours.limit : plan.exists ? colours.ground : colours.faint;
    context.lineWidth = plan === pane.plan ? 3 : 1;
    context.stroke();
  }
}

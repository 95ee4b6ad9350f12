import { html, type Markup } from '@playline/api-docs';
import { number } from '../../frame/parts.ts';
import type { RejectionStep } from '../../reads/index.ts';

/** In units of the drawing; the style sheet says how large it is shown. */
const WIDTH = 600;
const HEIGHT = 120;
/** The gap between bars, as a part of a step. */
const GAP = 0.2;
/** A bar of few errors is still this high, so that it can be seen. */
const BAR_MIN = 2;

export interface ChartSpan {
  readonly sinceMs: number;
  readonly untilMs: number;
  readonly stepS: number;
}

/** Errors over time as bars, one a step of the span; each says its time and number when it is pointed at. */
export function toChart(steps: readonly RejectionStep[], { sinceMs, untilMs, stepS }: ChartSpan): Markup {
  const stepMs = stepS * 1000;
  const first = Math.floor(sinceMs / stepMs) * stepMs;
  const count = Math.max(1, Math.ceil((untilMs - first) / stepMs));
  const errors = new Map<number, number>();
  for (const step of steps) errors.set(step.stepMs, (errors.get(step.stepMs) ?? 0) + step.errors);
  const most = [...errors.values()].reduce((most, each) => Math.max(most, each), 1);
  const width = WIDTH / count;
  const bars = [...errors].map(([at, value]) => {
    const height = Math.max(BAR_MIN, (value / most) * HEIGHT);
    const x = ((at - first) / stepMs + GAP / 2) * width;
    const says = `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')} UTC: ${number(value)}`;
    return html`<rect x="${round(x)}" y="${round(HEIGHT - height)}" width="${round(width * (1 - GAP))}" height="${round(height)}"><title>${says}</title></rect>`;
  });
  const label = `Errors over time, at most ${number(most)} in a step of ${toStepText(stepS)}`;
  return html`<svg class="chart" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${label}"><rect class="ground" x="0" y="0" width="${WIDTH}" height="${HEIGHT}"></rect>${bars}</svg>
<p class="hint">${label}.</p>`;
}

const round = (value: number) => String(Math.round(value * 100) / 100);

function toStepText(stepS: number): string {
  if (stepS < 3600) return `${stepS / 60} minutes`;
  return stepS < 86_400 ? `${stepS / 3600} hours` : `${stepS / 86_400} days`;
}

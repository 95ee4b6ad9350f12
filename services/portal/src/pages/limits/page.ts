/** An environment's rate limits: the cap set by an administrator and the limit set by the project. */
import {
  type EnvironmentMinute,
  type MessageRate,
  type ProjectEnvironment,
  setRates,
  type WantedRates,
} from '@playline/access-keys';
import { type HtmlValue, html } from '@playline/api-docs';
import { MESSAGE_RATE_MAX } from '@playline/contracts';
import { disclosure, field, keyValues, number, panel, percentage, readWholeNumber } from '../../frame/components.ts';
import type { FormAction, FormValues, PortalPage, Visit } from '../../frame/page.ts';
import { scopeOf } from '../../frame/scope.ts';
import type { PageParts } from '../index.ts';

type Parts = Pick<PageParts, 'projects' | 'usage'>;
type RateKind = 'limit' | 'cap';

const USAGE_MINUTES = 60;

export function createLimitsPage(parts: Parts): PortalPage {
  return {
    path: '/projects/:project/environments/:environment/limits',
    access: 'project.read',
    notices: { changed: 'Limit saved. All gateways apply it within a second.' },
    show: async (visit, failure) => {
      const { environment } = scopeOf(visit);
      const counts = await parts.usage.readEnvironments([environment.id], USAGE_MINUTES).catch(() => null);
      const usage = toUsageText(counts?.get(environment.id) ?? null, environment);
      const content = toContent(visit, usage, failure?.values);
      return { kind: 'page', title: 'Limits', content };
    },
    actions: { limit: rateAction(parts, 'limit'), cap: rateAction(parts, 'cap') },
  };
}

const rateAction = ({ projects }: Parts, kind: RateKind): FormAction => ({
  access: kind === 'cap' ? 'cap.set' : 'limit.set',
  run: async (visit, values) => {
    const { project, environment } = scopeOf(visit);
    const rates: WantedRates = { [kind]: readRate(values) };
    const names = { project: project.id, environment: environment.id };
    await setRates({ store: projects.storeFor(visit.author) }, names, rates);
    return { kind: 'redirect', notice: 'changed' };
  },
});

const RATE_RULE = `Enter 1 to ${number(MESSAGE_RATE_MAX.perSecond)} messages per second and a burst of 1 to ${number(MESSAGE_RATE_MAX.burst)}, or leave both fields empty.`;

function readRate(values: FormValues): MessageRate | null {
  if (values.text('per-second') === '' && values.text('burst') === '') return null;
  return {
    perSecond: readWholeNumber(values, 'per-second', MESSAGE_RATE_MAX.perSecond, RATE_RULE),
    burst: readWholeNumber(values, 'burst', MESSAGE_RATE_MAX.burst, RATE_RULE),
  };
}

/** Uses counters from the gateways. Rejected messages also count against the limit. */
function toUsageText(minutes: readonly EnvironmentMinute[] | null, { cap, limit }: ProjectEnvironment): string {
  if (minutes === null) return 'not available';
  const perSecond = minutes.map(({ accepted, rejected }) => (accepted + rejected) / 60);
  const total = perSecond.reduce((sum, each) => sum + each, 0);
  if (total === 0) return 'no messages in the last hour';
  const format = (rate: number) => number(Number(rate.toFixed(1)), 'messages/s');
  const peak = perSecond.reduce((max, each) => Math.max(max, each), Number.NEGATIVE_INFINITY);
  // Without a cap or a limit, the gateways' default applies, which the portal cannot read.
  const allowed = Math.min(cap?.perSecond ?? Number.POSITIVE_INFINITY, limit?.perSecond ?? Number.POSITIVE_INFINITY);
  const note = Number.isFinite(allowed) ? `, ${percentage(peak, allowed)} of the limit` : '';
  return `${format(total / minutes.length)} on average in the last hour, ${format(peak)} in the busiest minute${note}`;
}

function toContent(visit: Visit, usage: string, values?: FormValues): HtmlValue {
  const { environment } = scopeOf(visit);
  const rates = keyValues([
    ['Cap', toRateText(environment.cap, 'none; the gateways’ default applies')],
    ['Project limit', toRateText(environment.limit, 'none')],
    ['Current usage', usage],
  ]);
  const docs = html`<a class="docs" href="/docs/limits">Limits of sizes and rates</a>`;
  return html`<p class="muted">A cap or a project limit applies to all keys of the environment together. Without them, the gateways’ default applies to each key, including the keys that replace it. Above the rate, gateways respond with 429 and the number of seconds to wait. Accepted messages are never lost.</p>
${panel('Message rate', rates, { actions: docs })}
${visit.can('limit.set') ? toForm(visit, 'limit', values) : ''}
${visit.can('cap.set') ? toForm(visit, 'cap', values) : ''}`;
}

function toRateText(rate: MessageRate | null, none: string): string {
  return rate === null ? none : `${number(rate.perSecond, 'messages/s')}, burst ${number(rate.burst)}`;
}

function toForm(visit: Visit, kind: RateKind, values?: FormValues): HtmlValue {
  const rate = scopeOf(visit).environment[kind];
  const isSubmitted = values?.text('form') === kind;
  const textOf = (name: string, stored: number | undefined) => (isSubmitted ? values.text(name) : String(stored ?? ''));
  const [title, effect] =
    kind === 'limit'
      ? ['Change the project limit', 'The limit cannot exceed the cap.']
      : ['Change the cap (administrators only)', 'The cap overrides the gateways’ default.'];
  const form = visit.form(
    kind,
    html`<p>${effect} To remove the ${kind}, leave both fields empty.</p>
${field({ name: 'per-second', label: 'Messages per second', type: 'number', value: textOf('per-second', rate?.perSecond) })}
${field({ name: 'burst', label: 'Burst', type: 'number', value: textOf('burst', rate?.burst) })}
<button>Save ${kind}</button>`,
  );
  return disclosure(title, form, isSubmitted);
}

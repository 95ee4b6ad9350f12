/** What an environment may send: the cap of an administrator, and the project's own limit. */
import {
  type EnvironmentMinute,
  type MessageRate,
  type ProjectEnvironment,
  setRates,
  type WantedRates,
} from '@playline/access-keys';
import { type HtmlValue, html } from '@playline/api-docs';
import { MESSAGE_RATE_MAX } from '@playline/contracts';
import { invalidField } from '@playline/errors';
import { disclosure, field, number, share } from '../../frame/components.ts';
import type { FormAction, FormValues, PortalPage, Visit } from '../../frame/page.ts';
import { scopeOf } from '../../frame/scope.ts';
import type { PagesParts } from '../index.ts';

type Parts = Pick<PagesParts, 'projects' | 'usage'>;
type RateKind = 'limit' | 'cap';

const USE_MINUTES = 60;

export function createLimitsPage(parts: Parts): PortalPage {
  return {
    path: '/projects/:project/environments/:environment/limits',
    access: 'project.read',
    notices: { changed: 'Limit saved. All gateways apply it within a second.' },
    show: async (visit, fault) => {
      const { environment } = scopeOf(visit);
      const counts = await parts.usage.readEnvironments([environment.id], USE_MINUTES).catch(() => null);
      const use = toUse(counts?.get(environment.id) ?? null, environment);
      return { kind: 'page', title: `Limits of ${environment.name}`, content: toContent(visit, use, fault?.values) };
    },
    actions: { limit: rateAction(parts, 'limit'), cap: rateAction(parts, 'cap') },
  };
}

const rateAction = ({ projects }: Parts, kind: RateKind): FormAction => ({
  access: kind === 'cap' ? 'cap.set' : 'limit.set',
  run: async (visit, values) => {
    const { project, environment } = scopeOf(visit);
    const rates: WantedRates = { [kind]: rateOf(values) };
    const names = { project: project.id, environment: environment.id };
    await setRates({ store: projects.changedBy(visit.author) }, names, rates);
    return { kind: 'redirect', notice: 'changed' };
  },
});

/** Null when both fields are empty. @throws PublicError VALIDATION_ERROR */
function rateOf(values: FormValues): MessageRate | null {
  const [perSecond, burst] = [values.text('per-second'), values.text('burst')];
  if (perSecond === '' && burst === '') return null;
  return {
    perSecond: numberOf(perSecond, 'per-second', MESSAGE_RATE_MAX.perSecond),
    burst: numberOf(burst, 'burst', MESSAGE_RATE_MAX.burst),
  };
}

function numberOf(text: string, name: string, max: number): number {
  const value = Number(text);
  if (/^\d{1,8}$/.test(text) && value >= 1 && value <= max) return value;
  throw invalidField(
    name,
    `Enter messages per second from 1 to ${number(MESSAGE_RATE_MAX.perSecond)} and a burst from 1 to ${number(MESSAGE_RATE_MAX.burst)}, or leave both empty.`,
  );
}

/** From the gateways' counters; rejected messages count against the limit too. */
function toUse(minutes: readonly EnvironmentMinute[] | null, { cap, limit }: ProjectEnvironment): string {
  if (minutes === null) return 'not available';
  const perSecond = minutes.map(({ accepted, rejected }) => (accepted + rejected) / 60);
  const total = perSecond.reduce((sum, each) => sum + each, 0);
  if (total === 0) return 'no messages in the last hour';
  const toText = (rate: number) => number(Number(rate.toFixed(1)), 'messages/s');
  const busiest = perSecond.reduce((most, each) => Math.max(most, each), Number.NEGATIVE_INFINITY);
  // Without cap and limit the gateways' setting applies, which the portal does not know.
  const allowed = Math.min(cap?.perSecond ?? Number.POSITIVE_INFINITY, limit?.perSecond ?? Number.POSITIVE_INFINITY);
  const of = Number.isFinite(allowed) ? `, ${share(busiest, allowed)} of the limit` : '';
  return `${toText(total / minutes.length)} in the last hour, ${toText(busiest)} in its busiest minute${of}`;
}

function toContent(visit: Visit, use: string, values?: FormValues): HtmlValue {
  const { environment } = scopeOf(visit);
  return html`<p>The rate at which all clients of a key together may send messages. Beyond it, gateways answer 429 with the seconds to wait. Accepted messages are never lost.</p>
<dl><dt>Cap</dt><dd>${toText(environment.cap, 'none: the gateways’ setting applies')}</dd>
<dt>Project limit</dt><dd>${toText(environment.limit, 'none')}</dd>
<dt>In use</dt><dd>${use}</dd></dl>
${visit.mayDo('limit.set') ? toForm(visit, 'limit', values) : ''}
${visit.mayDo('cap.set') ? toForm(visit, 'cap', values) : ''}`;
}

function toText(rate: MessageRate | null, none: string): string {
  return rate === null ? none : `${number(rate.perSecond, 'messages/s')}, burst ${number(rate.burst)}`;
}

function toForm(visit: Visit, kind: RateKind, values?: FormValues): HtmlValue {
  const rate = scopeOf(visit).environment[kind];
  const isTyped = values?.text('form') === kind;
  const current = (name: string, stored: number | undefined) => (isTyped ? values.text(name) : String(stored ?? ''));
  const [title, effect] =
    kind === 'limit'
      ? ['Change the project limit', 'The limit cannot exceed the cap.']
      : ['Change the cap (administrators)', 'The cap replaces the gateways’ setting.'];
  const form = visit.form(
    kind,
    html`<p>${effect} Leave both fields empty to remove it.</p>
${field({ name: 'per-second', label: 'Messages per second', type: 'number', value: current('per-second', rate?.perSecond) })}
${field({ name: 'burst', label: 'Burst', type: 'number', value: current('burst', rate?.burst) })}
<button>Save ${kind}</button>`,
  );
  return disclosure(title, form, isTyped);
}

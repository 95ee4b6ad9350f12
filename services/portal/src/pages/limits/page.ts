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
import { environmentPath } from '../../frame/layout.ts';
import type { FormAction, FormValues, PortalPage, Visit } from '../../frame/page.ts';
import { scopeOf } from '../../frame/scope.ts';
import type { PortalParts } from '../../portal-parts.ts';

type Parts = Pick<PortalParts, 'projects' | 'usage'>;

/** Use is shown for the last hour, by the minute. */
const USE_MINUTES = 60;

/** What an environment may send: the cap of an administrator, and the project's own limit. */
export function createLimitsPage(parts: Parts): PortalPage {
  return {
    path: '/projects/:project/environments/:environment/limits',
    access: 'project.read',
    notices: { changed: 'Gateways follow within a second.' },
    show: async (visit, fault) => {
      const { environment } = scopeOf(visit);
      const use = toUse(await readMinutes(parts, environment.id), environment);
      return { kind: 'page', title: `Limits of ${environment.name}`, content: toContent(visit, use, fault?.values) };
    },
    actions: { limit: changing(parts, 'limit'), cap: changing(parts, 'cap') },
  };
}

const changing = ({ projects }: Parts, which: 'limit' | 'cap'): FormAction => ({
  access: which === 'cap' ? 'cap.set' : 'limit.set',
  run: async (visit, values) => {
    const { project, environment } = scopeOf(visit);
    const rates: WantedRates = { [which]: rateOf(values) };
    const at = { project: project.id, environment: environment.id };
    await setRates({ store: projects.changedBy(visit.author) }, at, rates);
    return { kind: 'see', to: `${environmentPath(project.id, environment.name)}/limits`, notice: 'changed' };
  },
});

/** Null when both fields are empty: nothing is said. @throws PublicError VALIDATION_ERROR for anything that is no rate */
function rateOf(values: FormValues): MessageRate | null {
  const [perSecond, burst] = [values.text('per-second'), values.text('burst')];
  if (perSecond === '' && burst === '') return null;
  return {
    perSecond: wholeOf(perSecond, 'per-second', MESSAGE_RATE_MAX.perSecond),
    burst: wholeOf(burst, 'burst', MESSAGE_RATE_MAX.burst),
  };
}

function wholeOf(text: string, name: string, max: number): number {
  const value = Number(text);
  if (/^\d{1,8}$/.test(text) && value >= 1 && value <= max) return value;
  throw invalidField(
    name,
    `Give messages a second from 1 to ${number(MESSAGE_RATE_MAX.perSecond)} and at once from 1 to ${number(MESSAGE_RATE_MAX.burst)}, or leave both empty.`,
  );
}

/** Null where the counts cannot be read now: the limits are shown without them. */
async function readMinutes({ usage }: Parts, environmentId: string): Promise<readonly EnvironmentMinute[] | null> {
  const read = await usage.readEnvironments([environmentId], USE_MINUTES).catch(() => null);
  return read?.get(environmentId) ?? null;
}

/** Of the last hour, as gateways counted it; rejected messages count against the limit, too. */
function toUse(minutes: readonly EnvironmentMinute[] | null, { cap, limit }: ProjectEnvironment): string {
  if (minutes === null) return 'cannot be counted now';
  const perSecond = minutes.map(({ accepted, rejected }) => (accepted + rejected) / 60);
  const total = perSecond.reduce((sum, each) => sum + each, 0);
  if (total === 0) return 'nothing in the last hour';
  const tell = (rate: number) => number(Number(rate.toFixed(1)), 'messages/s');
  const busiest = perSecond.reduce((most, each) => Math.max(most, each), Number.NEGATIVE_INFINITY);
  // Where neither is set the gateways' own setting counts, which the portal does not know.
  const allowed = Math.min(cap?.perSecond ?? Number.POSITIVE_INFINITY, limit?.perSecond ?? Number.POSITIVE_INFINITY);
  const of = Number.isFinite(allowed) ? `, ${share(busiest, allowed)} of what is allowed` : '';
  return `${tell(total / minutes.length)} in the last hour, ${tell(busiest)} in its busiest minute${of}`;
}

function toContent(visit: Visit, use: string, values?: FormValues): HtmlValue {
  const { environment } = scopeOf(visit);
  const typed = values?.text('deed') ?? '';
  return html`<p>How many messages all clients of a key may send together. Whoever sends more is answered with 429 and the seconds to wait; nothing that was accepted is lost.</p>
<dl><dt>Cap</dt><dd>${toText(environment.cap, 'none: the setting of the gateways holds')}</dd>
<dt>Limit of the project</dt><dd>${toText(environment.limit, 'none')}</dd>
<dt>In use</dt><dd>${use}</dd></dl>
${visit.mayDo('limit.set') ? disclosure('Change the limit of the project', toForm({ visit, which: 'limit', environment, typed, values }), typed === 'limit') : ''}
${visit.mayDo('cap.set') ? disclosure('Change the cap (administrators)', toForm({ visit, which: 'cap', environment, typed, values }), typed === 'cap') : ''}`;
}

function toText(rate: MessageRate | null, none: string): string {
  return rate === null ? none : `${number(rate.perSecond, 'messages/s')}, ${number(rate.burst)} at once`;
}

interface RateForm {
  readonly visit: Visit;
  readonly which: 'limit' | 'cap';
  readonly environment: ProjectEnvironment;
  /** The deed that failed, whose values were typed. */
  readonly typed: string;
  readonly values: FormValues | undefined;
}

function toForm({ visit, which, environment, typed, values }: RateForm): HtmlValue {
  const rate = environment[which];
  const kept = (name: string, standing: number | undefined) =>
    typed === which ? (values?.text(name) ?? '') : String(standing ?? '');
  const why =
    which === 'limit' ? 'It only lowers what the cap allows.' : 'In the place of the setting of the gateways.';
  return visit.form(
    which,
    html`<p>${why} Leave both empty to take it away.</p>
${field({ name: 'per-second', label: 'Messages a second', type: 'number', value: kept('per-second', rate?.perSecond) })}
${field({ name: 'burst', label: 'Messages at once', type: 'number', value: kept('burst', rate?.burst) })}
<button>Change the ${which}</button>`,
  );
}

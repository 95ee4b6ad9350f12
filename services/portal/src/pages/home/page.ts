/** The home page lists the projects that the account can access, with their most important metrics. */
import {
  createProject,
  DEFAULT_ENVIRONMENTS,
  type EnvironmentMinute,
  type ProjectRecord,
  toEnvironmentRate,
} from '@playline/access-keys';
import { type HtmlValue, html } from '@playline/api-docs';
import { type FoundAlerts, findAlerts, orNull, type ProjectMetrics, readMetrics } from '../../alerts/find-alerts.ts';
import { disclosure, emptyState, keyValues } from '../../frame/components.ts';
import { duration, number, percentage } from '../../frame/format.ts';
import { field } from '../../frame/forms.ts';
import { environmentPath, projectPath } from '../../frame/layout.ts';
import type { PortalPage, Visit } from '../../frame/page.ts';
import type { OpenDeadLetters } from '../../pipeline-status.ts';
import { type OldestErasures, toErasureRemedy, toOldestErasure } from '../erasures/open-erasures.ts';
import type { PageParts } from '../index.ts';

type Parts = Pick<PageParts, 'projects' | 'usage' | 'pipeline' | 'keys' | 'reads' | 'frame'>;

export function createHomePage(parts: Parts): PortalPage {
  const { projects } = parts;
  return {
    path: '/',
    access: 'signed in',
    show: async (visit, failure) => {
      const visible = (await projects.all()).filter(({ id }) => visit.can('project.read', id));
      const live = visible.filter(({ state }) => state === 'live').toSorted((a, b) => a.name.localeCompare(b.name));
      const [metrics, erasures] = await Promise.all([readMetrics(parts, live), readErasures(parts, visit, live)]);
      const archived = visible.filter(({ state }) => state === 'archived');
      return {
        kind: 'page',
        title: 'Projects',
        content: html`${
          live.length === 0
            ? toNoProjects(visit)
            : html`<ul class="cards wide">${live.map((project) => toCard(project, metrics, erasures))}</ul>
${toErasureRemedy(erasures, visit)}
${toNotes(visit, metrics)}`
        }
${toCreateForm(visit, failure?.values.text('name') ?? '', failure !== undefined)}
${archived.length === 0 ? '' : disclosure(`Archived (${archived.length})`, html`<ul>${archived.map(toArchived)}</ul>`)}`,
      };
    },
    actions: {
      create: {
        access: 'project.create',
        run: async (visit, values) => {
          const project = { name: values.text('name'), environments: DEFAULT_ENVIRONMENTS };
          const { id } = await createProject({ store: projects.storeFor(visit.author) }, project);
          return { kind: 'redirect', to: `${environmentPath(id, 'development')}/overview` };
        },
      },
    },
  };
}

async function readErasures(
  { reads, frame }: Parts,
  { can, signal }: Visit,
  projects: readonly ProjectRecord[],
): Promise<OldestErasures> {
  const readable = projects.filter(({ id }) => can('erasures.read', id));
  const ids = readable.flatMap(({ environments }) => environments.map(({ id }) => id));
  return { open: await orNull(reads.openErasures(ids, { signal })), nowMs: frame.wallClockMs() };
}

const NOT_AVAILABLE = 'not available';

function toCard(project: ProjectRecord, metrics: ProjectMetrics, erasures: OldestErasures): HtmlValue {
  const { id, name, environments } = project;
  const rows = environments.map((each) => {
    const link = html`<a href="${environmentPath(id, each.name)}/overview">${each.name}</a>`;
    return [link, toRate(metrics.minutes, each.id)] as const;
  });
  return html`<li class="panel card"><h2><a href="${projectPath(id)}" title="${id}">${name}</a></h2>
${keyValues(rows)}
${keyValues([
  ['Visible delay', toDelay(metrics)],
  ['Open dead letters', toDeadLetters(metrics.deadLetters, environments)],
  ['Oldest open erasure', toOldestErasure(erasures, project)],
  ['Alerts', html`<a href="${projectPath(id)}/alerts">${toAlerts(findAlerts(project, metrics))}</a>`],
])}</li>`;
}

/** The rate is averaged over five minutes, excluding the current minute, to smooth out bursts. */
const RATE_MINUTES = 6;
/** Below this number of events per second, a card shows the hourly count instead of the rate. */
const RATE_MIN = 1;

/** Uses counters from the gateways, because ClickHouse stores only a sample of the rejections. */
function toRate(counters: ProjectMetrics['minutes'], environmentId: string): string {
  if (counters === null) return NOT_AVAILABLE;
  const minutes = counters.get(environmentId) ?? [];
  const { perSecond, rejectedShare } = toEnvironmentRate(minutes.slice(-RATE_MINUTES));
  if (perSecond >= RATE_MIN)
    return `${number(Number(perSecond.toFixed(1)), 'events/s')}, ${percentage(rejectedShare, 1)} rejected`;
  const [accepted, rejected] = [sum(minutes, 'accepted'), sum(minutes, 'rejected')];
  if (accepted + rejected === 0) return 'no events in the last hour';
  return `${number(accepted)} in the last hour, ${percentage(rejected, accepted + rejected)} rejected`;
}

const sum = (minutes: readonly EnvironmentMinute[], name: 'accepted' | 'rejected') =>
  minutes.reduce((total, minute) => total + minute[name], 0);

function toDelay({ delay, nowMs }: ProjectMetrics): string {
  if (delay === null) return NOT_AVAILABLE;
  return delay.oldestMs === null ? 'none' : duration(nowMs - delay.oldestMs);
}

function toAlerts({ alerts, unavailable }: FoundAlerts): string {
  if (unavailable.length > 0) return alerts.length === 0 ? NOT_AVAILABLE : `at least ${number(alerts.length)}`;
  return alerts.length === 0 ? 'none' : number(alerts.length);
}

function toDeadLetters(deadLetters: OpenDeadLetters | null, environments: ProjectRecord['environments']): string {
  if (deadLetters === null) return NOT_AVAILABLE;
  const count = environments.reduce((sum, { id }) => sum + (deadLetters.byEnvironment.get(id) ?? 0), 0);
  return atLeast(deadLetters, count);
}

const atLeast = ({ isComplete }: OpenDeadLetters, count: number) =>
  isComplete ? number(count) : `at least ${number(count)}`;

/** Explains the cards. Shows administrators the number of dead letters on the instance. */
function toNotes(visit: Visit, { deadLetters, delay }: ProjectMetrics): HtmlValue {
  const waiting = delay !== null && delay.waiting > 0 ? ` Currently waiting: ${number(delay.waiting)}.` : '';
  const instance =
    deadLetters === null || !visit.can('accounts.read')
      ? ''
      : html`<p>Open dead letters on this instance: <strong>${atLeast(deadLetters, deadLetters.total)}</strong>, including dead letters without a project.${deadLetters.total === 0 ? '' : html` Run <code>npm run dead-letters -- list</code> to list them.`}</p>`;
  return html`${instance}<p class="quiet">Visible delay is the age of the oldest message that has not been stored yet. All projects share one event writer, so the delay is the same for every project.${waiting}</p>`;
}

const toArchived = ({ id, name }: ProjectRecord) =>
  html`<li><a href="${projectPath(id)}">${name}</a> <code>${id}</code></li>`;

const toNoProjects = (visit: Visit): HtmlValue =>
  emptyState(
    'No projects yet',
    visit.can('project.create')
      ? html`<p>A project represents one game. It has environments, such as production and development, and each environment has its own keys. Create a project below, then create a key to send your first event.</p>`
      : html`<p>Projects appear here once you have a role in them. Contact a project owner for an invitation, or contact an administrator to create a project.</p>`,
    { path: '/docs/quickstart', text: 'What you can do with a project' },
  );

function toCreateForm(visit: Visit, name: string, isOpen: boolean): HtmlValue {
  if (!visit.can('project.create')) return '';
  const hint = 'The name of your game. You can rename the project later, but its id never changes.';
  const form = visit.form(
    'create',
    html`${field({ name: 'name', label: 'Name', value: name, hint, isRequired: true, maxLength: 200 })}<button>Create project</button>`,
  );
  return disclosure('Create a project', form, isOpen);
}

/** The projects in which an account has a role. */
import {
  createProject,
  type EnvironmentMinute,
  type ProjectRecord,
  toEnvironmentRate,
  USUAL_ENVIRONMENTS,
} from '@playline/access-keys';
import { type HtmlValue, html } from '@playline/api-docs';
import { type Figures, type FoundAlerts, findAlerts, orNull, readFigures } from '../../alerts/find-alerts.ts';
import { disclosure, emptyState, field, number, share, span } from '../../frame/components.ts';
import { environmentPath, projectPath } from '../../frame/layout.ts';
import type { PortalPage, Visit } from '../../frame/page.ts';
import type { OpenDeadLetters } from '../../pipeline-status.ts';
import { type OldestErasures, toErasureRemedy, toOldestErasure } from '../erasures/open-erasures.ts';
import type { PagesParts } from '../index.ts';

type Parts = Pick<PagesParts, 'projects' | 'usage' | 'pipeline' | 'keys' | 'reads' | 'frame'>;

export function createHomePage(parts: Parts): PortalPage {
  const { projects } = parts;
  return {
    path: '/',
    access: 'signed in',
    show: async (visit, fault) => {
      const own = (await projects.all()).filter(({ id }) => visit.mayDo('project.read', id));
      const live = own.filter(({ state }) => state === 'live').toSorted((a, b) => a.name.localeCompare(b.name));
      const [figures, erasures] = await Promise.all([readFigures(parts, live), readErasures(parts, visit, live)]);
      const archived = own.filter(({ state }) => state === 'archived');
      return {
        kind: 'page',
        title: 'Projects',
        content: html`${
          live.length === 0
            ? toNoProjects(visit)
            : html`<ul class="cards">${live.map((project) => toCard(project, figures, erasures))}</ul>
${toErasureRemedy(erasures, visit)}
${toNotes(visit, figures)}`
        }
${toCreateForm(visit, fault?.values.text('name') ?? '', fault !== undefined)}
${archived.length === 0 ? '' : disclosure(`Archived (${archived.length})`, html`<ul>${archived.map(toLine)}</ul>`)}`,
      };
    },
    actions: {
      create: {
        access: 'project.create',
        run: async (visit, values) => {
          const project = { name: values.text('name'), environments: USUAL_ENVIRONMENTS };
          const { id } = await createProject({ store: projects.changedBy(visit.author) }, project);
          return { kind: 'redirect', to: `${environmentPath(id, 'development')}/keys` };
        },
      },
    },
  };
}

async function readErasures(
  { reads, frame }: Parts,
  { mayDo, signal }: Visit,
  projects: readonly ProjectRecord[],
): Promise<OldestErasures> {
  const readable = projects.filter(({ id }) => mayDo('erasures.read', id));
  const ids = readable.flatMap(({ environments }) => environments.map(({ id }) => id));
  return { open: await orNull(reads.openErasures(ids, { signal })), nowMs: frame.wallClockMs() };
}

const NOT_AVAILABLE = 'not available';

function toCard(project: ProjectRecord, figures: Figures, erasures: OldestErasures): HtmlValue {
  const { id, name, environments } = project;
  return html`<li class="card"><h2><a href="${projectPath(id)}">${name}</a></h2>
<dl>${environments.map(
    (each) =>
      html`<dt><a class="environment ${each.kind}" href="${environmentPath(id, each.name)}/keys">${each.name}</a></dt><dd>${toRate(figures.minutes, each.id)}</dd>`,
  )}<dt>Visible delay</dt><dd>${toDelay(figures)}</dd>
<dt>Open dead letters</dt><dd>${toDeadLetters(figures.deadLetters, environments)}</dd>
<dt>Oldest open erasure</dt><dd>${toOldestErasure(erasures, project)}</dd>
<dt>Alerts</dt><dd><a href="${projectPath(id)}/alerts">${toAlerts(findAlerts(project, figures))}</a></dd></dl>
<p class="quiet"><code>${id}</code></p></li>`;
}

/** The mean of these minutes, without the current one, so that one busy second does not dominate. */
const RATE_MINUTES = 6;
/** Below one event a second, the count of an hour is easier to read. */
const RATE_MIN = 1;

/** From the gateways' counters, because the rejections in ClickHouse are a sample. */
function toRate(counted: Figures['minutes'], environmentId: string): string {
  if (counted === null) return NOT_AVAILABLE;
  const minutes = counted.get(environmentId) ?? [];
  const { perSecond, rejectedShare } = toEnvironmentRate(minutes.slice(-RATE_MINUTES));
  if (perSecond >= RATE_MIN)
    return `${number(Number(perSecond.toFixed(1)), 'events/s')}, ${share(rejectedShare, 1)} rejected`;
  const [accepted, rejected] = [sumOf(minutes, 'accepted'), sumOf(minutes, 'rejected')];
  if (accepted + rejected === 0) return 'no events in the last hour';
  return `${number(accepted)} in the last hour, ${share(rejected, accepted + rejected)} rejected`;
}

const sumOf = (minutes: readonly EnvironmentMinute[], name: 'accepted' | 'rejected') =>
  minutes.reduce((sum, minute) => sum + minute[name], 0);

function toDelay({ delay, nowMs }: Figures): string {
  if (delay === null) return NOT_AVAILABLE;
  return delay.oldestMs === null ? 'none' : span(nowMs - delay.oldestMs);
}

function toAlerts({ alerts, unknown }: FoundAlerts): string {
  if (unknown.length > 0) return alerts.length === 0 ? NOT_AVAILABLE : `at least ${number(alerts.length)}`;
  return alerts.length === 0 ? 'none' : number(alerts.length);
}

function toDeadLetters(deadLetters: OpenDeadLetters | null, environments: ProjectRecord['environments']): string {
  if (deadLetters === null) return NOT_AVAILABLE;
  const count = environments.reduce((sum, { id }) => sum + (deadLetters.byEnvironment.get(id) ?? 0), 0);
  return atLeast(deadLetters, count);
}

const atLeast = ({ isWhole }: OpenDeadLetters, count: number) =>
  isWhole ? number(count) : `at least ${number(count)}`;

/** Explains the cards; administrators also see the dead letters of the instance. */
function toNotes(visit: Visit, { deadLetters, delay }: Figures): HtmlValue {
  const waiting = delay !== null && delay.waiting > 0 ? ` ${number(delay.waiting)} are waiting now.` : '';
  const instance =
    deadLetters === null || !visit.mayDo('accounts.read')
      ? ''
      : html`<p>Open dead letters of the instance: <strong>${atLeast(deadLetters, deadLetters.total)}</strong>, including those without a project.${deadLetters.total === 0 ? '' : html` Run <code>npm run dead-letters -- list</code> to list them.`}</p>`;
  return html`${instance}<p class="quiet">Visible delay: the age of the oldest message that is not stored yet. One writer stores for all projects, so it is the same for each.${waiting}</p>`;
}

const toLine = ({ id, name }: ProjectRecord) =>
  html`<li><a href="${projectPath(id)}">${name}</a> <code>${id}</code></li>`;

const toNoProjects = (visit: Visit): HtmlValue =>
  emptyState(
    'No projects yet',
    visit.mayDo('project.create')
      ? html`<p>A project is a game. It has environments, such as production and development, each with its own keys. Create one below; its page shows how to send the first event.</p>`
      : html`<p>Your projects will appear here once you have a role. Contact an owner for an invitation, or an administrator for a new project.</p>`,
  );

function toCreateForm(visit: Visit, name: string, isOpen: boolean): HtmlValue {
  if (!visit.mayDo('project.create')) return '';
  const hint = 'The name of the game. You can change it later, but not the project id.';
  const form = visit.form(
    'create',
    html`${field({ name: 'name', label: 'Name', value: name, hint, isRequired: true, charactersMax: 200 })}<button>Create project</button>`,
  );
  return disclosure('Create a project', form, isOpen);
}

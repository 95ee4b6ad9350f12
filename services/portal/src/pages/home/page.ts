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

/** The projects that an account has a role in. */
export function createHomePage(parts: Parts): PortalPage {
  const { projects } = parts;
  return {
    path: '/',
    access: 'signed in',
    show: async (visit, fault) => {
      const mine = (await projects.all()).filter(({ id }) => visit.mayDo('project.read', id));
      const live = mine.filter(({ state }) => state === 'live').toSorted((a, b) => a.name.localeCompare(b.name));
      const [figures, erasures] = await Promise.all([readFigures(parts, live), readErasures(parts, visit, live)]);
      const archived = mine.filter(({ state }) => state === 'archived');
      return {
        kind: 'page',
        title: 'Projects',
        content: html`${
          live.length === 0
            ? nothingYet(visit)
            : html`<ul class="cards">${live.map((project) => toCard(project, figures, erasures))}</ul>
${toErasureRemedy(erasures, visit)}
${toMeasures(visit, figures)}`
        }
${toCreateForm(visit, fault?.values.text('name') ?? '', fault?.message)}
${archived.length === 0 ? '' : disclosure(`Archived (${archived.length})`, html`<ul>${archived.map(toLine)}</ul>`)}`,
      };
    },
    actions: {
      create: {
        access: 'project.create',
        run: async (visit, values) => {
          const wanted = { name: values.text('name'), environments: USUAL_ENVIRONMENTS };
          const made = await createProject({ store: projects.changedBy(visit.author) }, wanted);
          return { kind: 'see', to: `${environmentPath(made.id, 'development')}/keys` };
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
  const seen = projects.filter(({ id }) => mayDo('erasures.read', id));
  const ids = seen.flatMap(({ environments }) => environments.map(({ id }) => id));
  return { open: await orNull(reads.openErasures(ids, { signal })), nowMs: frame.wallClockMs() };
}

/** Rates are means of these minutes, so that one busy second does not look like the usual rate. The present minute is left out. */
const RATE_MINUTES = 6;
/** Below one event a second a rate is hard to read: the card then tells the events of an hour. */
const RATE_MIN = 1;

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

/** As gateways counted it: the rejections in ClickHouse are a sample. */
function toRate(counted: Figures['minutes'], environmentId: string): string {
  if (counted === null) return 'cannot be counted now';
  const minutes = counted.get(environmentId) ?? [];
  const { perSecond, rejectedShare } = toEnvironmentRate(minutes.slice(-RATE_MINUTES));
  if (perSecond >= RATE_MIN)
    return `${number(Number(perSecond.toFixed(1)), 'events/s')}, ${share(rejectedShare, 1)} rejected`;
  const [accepted, rejected] = [sumOf(minutes, 'accepted'), sumOf(minutes, 'rejected')];
  if (accepted + rejected === 0) return 'nothing in the last hour';
  return `${number(accepted)} in the last hour, ${share(rejected, accepted + rejected)} rejected`;
}

const sumOf = (minutes: readonly EnvironmentMinute[], name: 'accepted' | 'rejected') =>
  minutes.reduce((sum, minute) => sum + minute[name], 0);

function toDelay({ delay, nowMs }: Figures): string {
  if (delay === null) return 'cannot be told now';
  return delay.oldestMs === null ? 'none: all is stored' : span(nowMs - delay.oldestMs);
}

/** While some figures cannot be read, no alert does not mean that all is well. */
function toAlerts({ alerts, unknown }: FoundAlerts): string {
  if (unknown.length > 0) return alerts.length === 0 ? 'cannot be told now' : `at least ${number(alerts.length)}`;
  return alerts.length === 0 ? 'none' : number(alerts.length);
}

function toDeadLetters(letters: OpenDeadLetters | null, environments: ProjectRecord['environments']): string {
  if (letters === null) return 'cannot be told now';
  const count = environments.reduce((sum, { id }) => sum + (letters.byEnvironment.get(id) ?? 0), 0);
  return atLeast(letters, count);
}

const atLeast = ({ isWhole }: OpenDeadLetters, count: number) =>
  isWhole ? number(count) : `at least ${number(count)}`;

/** What the figures of the cards are, and for administrators what belongs to no project. */
function toMeasures(visit: Visit, { deadLetters: letters, delay }: Figures): HtmlValue {
  const waiting = delay !== null && delay.waiting > 0 ? ` ${number(delay.waiting)} wait now.` : '';
  const all =
    letters === null || !visit.mayDo('accounts.read')
      ? ''
      : html`<p>Open dead letters of the instance: <strong>${atLeast(letters, letters.total)}</strong>, with those of no project.${letters.total === 0 ? '' : html` <code>npm run dead-letters -- list</code> tells of them.`}</p>`;
  return html`${all}<p class="quiet">Visible delay: for how long the oldest message that is not stored yet has been on the log. One writer stores for all projects, so it is the same for each.${waiting}</p>`;
}

const toLine = ({ id, name }: ProjectRecord) =>
  html`<li><a href="${projectPath(id)}">${name}</a> <code>${id}</code></li>`;

function nothingYet(visit: Visit): HtmlValue {
  return visit.mayDo('project.create')
    ? emptyState(
        'No project yet',
        html`<p>A project is a game. It has environments, such as production and development, and each environment has keys of its own. Create one below; its page then says how to send the first event.</p>`,
      )
    : emptyState(
        'No project yet',
        html`<p>You have a role in no project. Ask an owner of one to invite you, or an administrator to create one.</p>`,
      );
}

function toCreateForm(visit: Visit, name: string, fault?: string): HtmlValue {
  if (!visit.mayDo('project.create')) return '';
  const hint = 'What your team calls the game. It can be changed; the id that it gets cannot.';
  return disclosure(
    'Create a project',
    visit.form(
      'create',
      html`${field({ name: 'name', label: 'Name', value: name, hint, isRequired: true, charactersMax: 200 })}<button>Create the project</button>`,
    ),
    fault !== undefined,
  );
}

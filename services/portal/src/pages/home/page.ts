/** The home page lists the projects that the account can access, with the message rate of their environments. */
import {
  createProject,
  DEFAULT_ENVIRONMENTS,
  type EnvironmentMinute,
  type ProjectRecord,
  toEnvironmentRate,
} from '@playline/access-keys';
import { type HtmlValue, html } from '@playline/api-docs';
import { disclosure, emptyState, field, keyValues, number, percentage } from '../../frame/components.ts';
import { environmentPath, projectPath } from '../../frame/layout.ts';
import { orNull } from '../../frame/or-null.ts';
import type { PortalPage, Visit } from '../../frame/page.ts';
import type { PageParts } from '../index.ts';

type Minutes = ReadonlyMap<string, readonly EnvironmentMinute[]> | null;

export function createHomePage({ projects, usage }: Pick<PageParts, 'projects' | 'usage'>): PortalPage {
  return {
    path: '/',
    access: 'signed in',
    show: async (visit, failure) => {
      const { live = [], archived = [] } = Object.groupBy(visit.projects, ({ state }) => state);
      const ids = live.flatMap(({ environments }) => environments.map(({ id }) => id));
      const minutes = await orNull(usage.readEnvironments(ids, HOUR_MINUTES));
      const list = html`<ul class="cards wide">${live.map((project) => toCard(project, minutes))}</ul>`;
      return {
        kind: 'page',
        title: 'Projects',
        content: html`${live.length === 0 ? toNoProjects(visit) : list}
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

function toCard({ id, name, environments }: ProjectRecord, minutes: Minutes): HtmlValue {
  const rows = environments.map((each) => {
    const link = html`<a href="${environmentPath(id, each.name)}/overview">${each.name}</a>`;
    return [link, minutes === null ? 'not available' : toRate(minutes.get(each.id) ?? [])] as const;
  });
  return html`<li class="panel card"><h2><a href="${projectPath(id)}" title="${id}">${name}</a></h2>${keyValues(rows)}</li>`;
}

/** Includes the current minute. */
const HOUR_MINUTES = 61;
/** The rate is averaged over five minutes, excluding the current minute, to smooth out bursts. */
const RATE_MINUTES = 6;
/** Below this number of events per second, a card shows the hourly count instead of the rate. */
const RATE_MIN = 1;

/** Uses counters from the gateways, because ClickHouse stores only a sample of the rejections. */
function toRate(minutes: readonly EnvironmentMinute[]): string {
  const { perSecond, rejectedShare } = toEnvironmentRate(minutes.slice(-RATE_MINUTES));
  if (perSecond >= RATE_MIN)
    return `${number(Number(perSecond.toFixed(1)), 'events/s')}, ${percentage(rejectedShare, 1)} rejected`;
  const accepted = minutes.reduce((sum, minute) => sum + minute.accepted, 0);
  const rejected = minutes.reduce((sum, minute) => sum + minute.rejected, 0);
  if (accepted + rejected === 0) return 'no events in the last hour';
  return `${number(accepted)} in the last hour, ${percentage(rejected, accepted + rejected)} rejected`;
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

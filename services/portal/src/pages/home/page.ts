import {
  createProject,
  type EnvironmentMinute,
  type ProjectRecord,
  toEnvironmentRate,
  USUAL_ENVIRONMENTS,
} from '@playline/access-keys';
import { type HtmlValue, html } from '@playline/api-docs';
import { environmentPath, projectPath } from '../../frame/layout.ts';
import type { PortalPage, Visit } from '../../frame/page.ts';
import { disclosure, emptyState, field, number, share } from '../../frame/parts.ts';
import type { PortalParts } from '../../portal-parts.ts';

/** The projects that an account has a role in. */
export function createHomePage({ projects, usage }: Pick<PortalParts, 'projects' | 'usage'>): PortalPage {
  return {
    path: '/',
    access: 'signed in',
    show: async (visit, fault) => {
      const mine = (await projects.all()).filter(({ id }) => visit.mayDo('project.read', id));
      const live = mine.filter(({ state }) => state === 'live').toSorted((a, b) => a.name.localeCompare(b.name));
      const rates = await readRates(usage, live);
      const archived = mine.filter(({ state }) => state === 'archived');
      return {
        kind: 'page',
        title: 'Projects',
        content: html`${live.length === 0 ? nothingYet(visit) : html`<ul class="cards">${live.map((project) => toCard(project, rates))}</ul>`}
${toCreateForm(visit, fault?.values.text('name') ?? '', fault?.message)}
${archived.length === 0 ? '' : disclosure(`Archived (${archived.length})`, html`<ul>${archived.map(toLine)}</ul>`)}`,
      };
    },
    deeds: {
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

/** What rates are of: enough minutes that one busy second does not pass for the rule. */
const RATE_MINUTES = 6;

/** By environment id; null where the counts cannot be had now. */
type Rates = ReadonlyMap<string, readonly EnvironmentMinute[]> | null;

/** The page tells what projects there are although nobody can count at the moment. */
async function readRates(usage: PortalParts['usage'], projects: readonly ProjectRecord[]): Promise<Rates> {
  const ids = projects.flatMap(({ environments }) => environments.map(({ id }) => id));
  return usage.readEnvironments(ids, RATE_MINUTES).catch(() => null);
}

function toCard({ id, name, environments }: ProjectRecord, rates: Rates): HtmlValue {
  return html`<li class="card"><h2><a href="${projectPath(id)}">${name}</a></h2>
<dl>${environments.map(
    (each) =>
      html`<dt><a class="environment ${each.kind}" href="${environmentPath(id, each.name)}/keys">${each.name}</a></dt><dd>${toRate(rates, each.id)}</dd>`,
  )}</dl>
<p class="quiet"><code>${id}</code></p></li>`;
}

/** Of the last whole minutes, as gateways counted them: the rejections in ClickHouse are a sample. */
function toRate(rates: Rates, environmentId: string): string {
  if (rates === null) return 'cannot be counted now';
  const { perSecond, rejectedShare } = toEnvironmentRate(rates.get(environmentId) ?? []);
  if (perSecond === 0 && rejectedShare === 0) return 'nothing in five minutes';
  return `${number(Number(perSecond.toFixed(1)), 'events/s')}, ${share(rejectedShare, 1)} rejected`;
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

import { createProject, type ProjectRecord, USUAL_ENVIRONMENTS } from '@playline/access-keys';
import { type HtmlValue, html } from '@playline/api-docs';
import { environmentPath, projectPath } from '../../frame/layout.ts';
import type { PortalPage, Visit } from '../../frame/page.ts';
import { disclosure, emptyState, field } from '../../frame/parts.ts';
import type { PortalParts } from '../../portal-parts.ts';

/** The projects that an account has a role in. */
export function createHomePage({ projects }: Pick<PortalParts, 'projects'>): PortalPage {
  return {
    path: '/',
    access: 'signed in',
    show: async (visit, fault) => {
      const mine = (await projects.all()).filter(({ id }) => visit.mayDo('project.read', id));
      const live = mine.filter(({ state }) => state === 'live').toSorted((a, b) => a.name.localeCompare(b.name));
      const archived = mine.filter(({ state }) => state === 'archived');
      return {
        kind: 'page',
        title: 'Projects',
        content: html`${live.length === 0 ? nothingYet(visit) : html`<ul class="cards">${live.map(toCard)}</ul>`}
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

function toCard({ id, name, environments }: ProjectRecord): HtmlValue {
  return html`<li class="card"><h2><a href="${projectPath(id)}">${name}</a></h2>
<p>${environments.map((each) => html`<a class="environment ${each.kind}" href="${environmentPath(id, each.name)}/keys">${each.name}</a> `)}</p>
<p class="quiet"><code>${id}</code></p></li>`;
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

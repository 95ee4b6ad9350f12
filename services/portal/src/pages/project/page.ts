import {
  addEnvironment,
  archiveProject,
  type KeyEnvironment,
  keysOfProject,
  type ProjectRecord,
  renameProject,
} from '@playline/access-keys';
import { type HtmlValue, html } from '@playline/api-docs';
import { invalidField, PublicError } from '@playline/errors';
import { orNull } from '../../alerts/find-alerts.ts';
import { choice, copyable, disclosure, field, table, time } from '../../frame/components.ts';
import { environmentPath, projectPath } from '../../frame/layout.ts';
import type { FormAction, FormValues, PortalPage, Visit } from '../../frame/page.ts';
import { projectOf } from '../../frame/scope.ts';
import { type OldestErasures, toErasureRemedy, toOldestErasure } from '../erasures/open-erasures.ts';
import type { PagesParts } from '../index.ts';

type Parts = Pick<PagesParts, 'projects' | 'keys' | 'reads' | 'frame'>;

/** One project: its environments, its name, its end. */
export function createProjectPage(parts: Parts): PortalPage {
  return {
    path: '/projects/:project',
    access: 'project.read',
    notices: {
      renamed: 'The project has its new name.',
      added: 'The environment is there. Create its keys next.',
      archived: 'The project is archived. What it has sent stays where it is.',
    },
    show: async (visit, fault) => {
      const project = projectOf(visit);
      const ids = project.environments.map(({ id }) => id);
      const open = await orNull(parts.reads.openErasures(ids, { signal: visit.signal }));
      const erasures = { open, nowMs: parts.frame.wallClockMs() };
      const shown = { project, erasures, ...(fault === undefined ? {} : { values: fault.values }) };
      return { kind: 'page', title: project.name, content: toContent(visit, shown) };
    },
    actions: { rename: renaming(parts), 'add-environment': adding(parts), archive: archiving(parts) },
  };
}

const renaming = ({ projects }: Parts): FormAction => ({
  access: 'project.rename',
  run: async (visit, values) => {
    const { id } = projectOf(visit);
    await renameProject({ store: projects.changedBy(visit.author) }, id, values.text('name'));
    return { kind: 'see', to: projectPath(id), notice: 'renamed' };
  },
});

const adding = ({ projects }: Parts): FormAction => ({
  access: 'environment.create',
  run: async (visit, values) => {
    const { id } = projectOf(visit);
    const wanted = { project: id, name: values.text('environment'), kind: kindOf(values) };
    await addEnvironment({ store: projects.changedBy(visit.author) }, wanted);
    return { kind: 'see', to: projectPath(id), notice: 'added' };
  },
});

function kindOf(values: FormValues): KeyEnvironment {
  const kind = values.text('kind');
  if (kind === 'production' || kind === 'development') return kind;
  throw invalidField('kind', 'An environment is of production or of development.');
}

const archiving = ({ projects, keys }: Parts): FormAction => ({
  access: 'project.archive',
  needsFreshSignIn: true,
  run: async (visit, values) => {
    const { id, name } = projectOf(visit);
    if (values.text('confirm') !== name)
      throw invalidField('confirm', `Type the name of the project, ${name}, to archive it.`);
    const live = keysOfProject(await keys.all(), id).filter(({ revokedAt }) => revokedAt === null);
    if (live.length > 0)
      throw new PublicError('CONFLICT_ERROR', {
        message: `The project has ${live.length} live keys, which would go on: revoke them first.`,
      });
    await archiveProject({ store: projects.changedBy(visit.author) }, id);
    return { kind: 'see', to: projectPath(id), notice: 'archived' };
  },
});

interface Shown {
  readonly project: ProjectRecord;
  readonly erasures: OldestErasures;
  readonly values?: FormValues;
}

function toContent(visit: Visit, { project, erasures, values }: Shown): HtmlValue {
  const rows = project.environments.map((environment) => [
    ...toCells(project, environment),
    toOldestErasure(erasures, project, [environment]),
  ]);
  const state =
    project.state === 'archived'
      ? html`<p class="message failed">This project is archived: nothing can be made in it any more.</p>`
      : '';
  return html`${state}
<dl><dt>Project id</dt><dd>${copyable(project.id, 'the id of the project')}</dd>
<dt>Created</dt><dd>${time(project.createdAt)}</dd></dl>
<h2>Environments</h2>
${table('Environments', ['Name', 'Kind', 'Id', 'Created', 'Oldest open erasure'], rows)}
${toErasureRemedy(erasures, visit)}
${project.state === 'archived' ? '' : toForms(visit, project, values)}`;
}

function toCells({ id: projectId }: ProjectRecord, environment: ProjectRecord['environments'][number]): HtmlValue[] {
  const { id, name, kind, createdAt } = environment;
  const link = html`<a class="environment ${kind}" href="${environmentPath(projectId, name)}/keys">${name}</a>`;
  return [link, kind, copyable(id, `the id of ${name}`), time(createdAt)];
}

function toForms(visit: Visit, project: ProjectRecord, values?: FormValues): HtmlValue {
  const typed = values?.text('deed') ?? '';
  const add = visit.form(
    'add-environment',
    html`${field({ name: 'environment', label: 'Name', value: values?.text('environment') ?? '', hint: 'Lower-case letters, digits, _ and -; it cannot be changed.', isRequired: true, charactersMax: 64 })}
${choice({
  name: 'kind',
  label: 'Kind',
  value: values?.text('kind') || 'development',
  choices: [
    { value: 'development', text: 'development: keys with _test' },
    { value: 'production', text: 'production' },
  ],
})}
<button>Add the environment</button>`,
  );
  const rename = visit.form(
    'rename',
    html`${field({ name: 'name', label: 'Name', value: values?.text('name') || project.name, isRequired: true, charactersMax: 200 })}<button>Rename</button>`,
  );
  const archive = visit.form(
    'archive',
    html`<p>Ends the project for ever: nothing can be made in it any more, and its id is never given again. What it has sent stays where it is. Revoke its keys first.</p>
${field({ name: 'confirm', label: `Type ${project.name} to archive it`, isRequired: true })}<button class="danger">Archive the project</button>`,
  );
  return html`${visit.mayDo('environment.create') ? disclosure('Add an environment', add, typed === 'add-environment') : ''}
${visit.mayDo('project.rename') ? disclosure('Rename', rename, typed === 'rename') : ''}
${visit.mayDo('project.archive') ? disclosure('Archive', archive, typed === 'archive') : ''}`;
}

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
import { copyable, disclosure, keyValues, panel, table, time } from '../../frame/components.ts';
import { choice, field } from '../../frame/forms.ts';
import { environmentPath } from '../../frame/layout.ts';
import type { FormAction, FormValues, PortalPage, Visit } from '../../frame/page.ts';
import { projectOf } from '../../frame/scope.ts';
import { type OldestErasures, toErasureRemedy, toOldestErasure } from '../erasures/open-erasures.ts';
import type { PageParts } from '../index.ts';

type Parts = Pick<PageParts, 'projects' | 'keys' | 'reads' | 'frame'>;

export function createProjectPage(parts: Parts): PortalPage {
  const { projects, reads, frame } = parts;
  return {
    path: '/projects/:project',
    access: 'project.read',
    notices: {
      renamed: 'Project renamed.',
      added: 'Environment added. Next, create its keys.',
      archived: 'Project archived. Its data remains available.',
    },
    show: async (visit, failure) => {
      const ids = projectOf(visit).environments.map(({ id }) => id);
      const open = await orNull(reads.openErasures(ids, { signal: visit.signal }));
      const content = toContent(visit, { open, nowMs: frame.wallClockMs() }, failure?.values);
      return { kind: 'page', title: 'Project settings', content };
    },
    actions: {
      rename: {
        access: 'project.rename',
        run: async (visit, values) => {
          await renameProject({ store: projects.storeFor(visit.author) }, projectOf(visit).id, values.text('name'));
          return { kind: 'redirect', notice: 'renamed' };
        },
      },
      'add-environment': {
        access: 'environment.create',
        run: async (visit, values) => {
          const environment = { name: values.text('environment'), kind: readKind(values) };
          const store = projects.storeFor(visit.author);
          await addEnvironment({ store }, { project: projectOf(visit).id, ...environment });
          return { kind: 'redirect', notice: 'added' };
        },
      },
      archive: archiveAction(parts),
    },
  };
}

function readKind(values: FormValues): KeyEnvironment {
  const kind = values.text('kind');
  if (kind === 'production' || kind === 'development') return kind;
  throw invalidField('kind', 'Choose production or development.');
}

const archiveAction = ({ projects, keys }: Parts): FormAction => ({
  access: 'project.archive',
  needsFreshSignIn: true,
  run: async (visit, values) => {
    const { id, name } = projectOf(visit);
    if (values.text('confirm') !== name)
      throw invalidField('confirm', `Type the project name, ${name}, to archive the project.`);
    const live = keysOfProject(await keys.all(), id).filter(({ revokedAt }) => revokedAt === null);
    if (live.length > 0)
      throw new PublicError('CONFLICT_ERROR', {
        message: `The project still has live keys (${live.length}). Revoke them first.`,
      });
    await archiveProject({ store: projects.storeFor(visit.author) }, id);
    return { kind: 'redirect', notice: 'archived' };
  },
});

function toContent(visit: Visit, erasures: OldestErasures, values?: FormValues): HtmlValue {
  const project = projectOf(visit);
  const isArchived = project.state === 'archived';
  const rows = project.environments.map((environment) => [
    ...toCells(project, environment),
    toOldestErasure(erasures, project, [environment]),
  ]);
  const ids = keyValues([
    ['Name', project.name],
    ['Project id', copyable(project.id, 'the project id')],
    ['Created', time(project.createdAt)],
  ]);
  const { add, others } = isArchived ? { add: '', others: '' } : toForms(visit, project, values);
  const columns = ['Name', 'Type', 'Id', 'Created', 'Oldest open erasure'];
  return html`${isArchived ? html`<p class="message failed">This project is archived and cannot be changed.</p>` : ''}
${panel('Environments', html`${table('Environments', columns, rows)}${add}`)}
${toErasureRemedy(erasures, visit)}
${panel('Project', html`${ids}${others}`)}`;
}

function toCells({ id: projectId }: ProjectRecord, environment: ProjectRecord['environments'][number]): HtmlValue[] {
  const { id, name, kind, createdAt } = environment;
  const link = html`<a href="${environmentPath(projectId, name)}/overview">${name}</a>`;
  return [link, kind, copyable(id, `the id of ${name}`), time(createdAt)];
}

const KIND_CHOICES = [
  { value: 'development', text: 'development: keys contain _test' },
  { value: 'production', text: 'production' },
];

function toForms(visit: Visit, project: ProjectRecord, values?: FormValues) {
  const submittedForm = values?.text('form') ?? '';
  const add = visit.form(
    'add-environment',
    html`${field({ name: 'environment', label: 'Name', value: values?.text('environment') ?? '', hint: 'Lowercase letters, digits, _ and -. The name cannot be changed later.', isRequired: true, maxLength: 64 })}
${choice({ name: 'kind', label: 'Type', value: values?.text('kind') || 'development', choices: KIND_CHOICES })}
<button>Add environment</button>`,
  );
  const rename = visit.form(
    'rename',
    html`${field({ name: 'name', label: 'Name', value: values?.text('name') || project.name, isRequired: true, maxLength: 200 })}<button>Rename project</button>`,
  );
  const archive = visit.form(
    'archive',
    html`<p>Archiving cannot be undone. The project becomes read-only, and its id is never reused. Its data remains available. Revoke all of its keys first.</p>
${field({ name: 'confirm', label: `Type ${project.name} to confirm`, isRequired: true })}<button class="danger">Archive project</button>`,
  );
  const others = html`${visit.can('project.rename') ? disclosure('Rename the project', rename, submittedForm === 'rename') : ''}
${visit.can('project.archive') ? disclosure('Archive the project', archive, submittedForm === 'archive') : ''}`;
  const isAdding = submittedForm === 'add-environment';
  return { add: visit.can('environment.create') ? disclosure('Add an environment', add, isAdding) : '', others };
}

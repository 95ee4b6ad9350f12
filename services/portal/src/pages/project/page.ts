import {
  addEnvironment,
  archiveProject,
  type KeyEnvironment,
  keysOfProject,
  type ProjectRecord,
  renameProject,
} from '@playline/access-keys';
import { type HtmlValue, html, type Markup } from '@playline/api-docs';
import { invalidField, PublicError } from '@playline/errors';
import {
  choice,
  copyable,
  disclosure,
  duration,
  field,
  keyValues,
  number,
  panel,
  table,
  time,
} from '../../frame/components.ts';
import { environmentPath } from '../../frame/layout.ts';
import { orNull } from '../../frame/or-null.ts';
import type { FormAction, FormValues, PortalPage, Visit } from '../../frame/page.ts';
import { projectOf } from '../../frame/scope.ts';
import type { OpenErasures } from '../../reads/index.ts';
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

interface OldestErasures {
  readonly open: readonly OpenErasures[] | null;
  readonly nowMs: number;
}

function toContent(visit: Visit, erasures: OldestErasures, values?: FormValues): HtmlValue {
  const project = projectOf(visit);
  const isArchived = project.state === 'archived';
  const rows = project.environments.map(({ id, name, kind, createdAt }) => {
    const path = environmentPath(project.id, name);
    return [
      html`<a href="${path}/overview">${name}</a>`,
      kind,
      copyable(id, `the id of ${name}`),
      time(createdAt),
      toOldestErasure(erasures, id, path),
    ];
  });
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

/** Erasures usually take less than a minute. */
const LATE_MS = 5 * 60_000;

/** The age of the oldest open erasure of an environment, as a link to the erasures. */
function toOldestErasure({ open, nowMs }: OldestErasures, id: string, path: string): HtmlValue {
  if (open === null) return 'not available';
  const found = open.find(({ environmentId }) => environmentId === id);
  if (found === undefined) return 'none';
  const ageMs = nowMs - found.oldestMs;
  const late = ageMs > LATE_MS ? html` <span class="tag bad">late</span>` : '';
  return html`<a href="${path}/erasures">${duration(ageMs)}</a>${found.count === 1 ? '' : `, ${number(found.count)} open`}${late}`;
}

/** Returns a warning about the oldest open erasure if it is late; otherwise empty. */
function toErasureRemedy({ open, nowMs }: OldestErasures, visit: Visit): Markup {
  const [oldest] = open ?? [];
  if (oldest === undefined || nowMs - oldest.oldestMs <= LATE_MS) return html``;
  const remedy = visit.can('accounts.read')
    ? html`Run <code>npm run status</code> to see why the eraser makes no progress, and <code>npm run erasures -- show ${oldest.oldestId}</code> to see the state of this erasure.`
    : html`Report the erasure id <code>${oldest.oldestId}</code> to the operator of this instance.`;
  return html`<p class="message failed">An erasure has been open for ${duration(nowMs - oldest.oldestMs)}. ${remedy}</p>`;
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

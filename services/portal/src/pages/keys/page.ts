import {
  createKey,
  hashKey,
  type KeyKind,
  type KeyRecord,
  type KeyUse,
  keysOfProject,
  type NewKey,
  NO_USE,
  refreshKey,
  revokeKey,
  setKeyOrigins,
} from '@playline/access-keys';
import { type HtmlValue, html } from '@playline/api-docs';
import { invalidField } from '@playline/errors';
import { copyable, disclosure, field, hidden, lines, number, table, time } from '../../frame/components.ts';
import { environmentPath } from '../../frame/layout.ts';
import type { Answer, FormAction, FormValues, PortalPage, Visit } from '../../frame/page.ts';
import { scopeOf } from '../../frame/scope.ts';
import type { PagesParts } from '../index.ts';
import { toRevealed } from './revealed.ts';

type Parts = Pick<PagesParts, 'keys' | 'usage' | 'settings' | 'writeAudit'>;

const KINDS: readonly { kind: KeyKind; title: string; what: string }[] = [
  {
    kind: 'publishable',
    title: 'Publishable key',
    what: 'Game clients carry it and send messages with it. It is no secret.',
  },
  {
    kind: 'secret',
    title: 'Secret key',
    what: 'Servers erase people with it. It is shown once, when it is made; nothing reveals it later.',
  },
];

const NAME_CHARACTERS_MAX = 100;

/** Publishable and secret key of an environment. */
export function createKeysPage(parts: Parts): PortalPage {
  return {
    path: '/projects/:project/environments/:environment/keys',
    access: 'keys.read',
    notices: {
      origins: 'Allowed origins saved. All gateways apply them within a second.',
      revoked: 'Key revoked. It stops within a second on every gateway.',
    },
    show: async (visit, fault) => {
      const { project, environment } = scopeOf(visit);
      const records = keysOfProject(await parts.keys.all(), project.id).filter(
        ({ environmentId }) => environmentId === environment.id,
      );
      const uses = await readUses(parts, records);
      const content = toContent({ visit, records, uses, ...(fault === undefined ? {} : { values: fault.values }) });
      return { kind: 'page', title: `Keys of ${environment.name}`, content };
    },
    actions: {
      create: { access: 'keys.create', needsFreshSignIn: true, run: (visit, values) => makeKey(parts, visit, values) },
      refresh: {
        access: 'keys.refresh',
        needsFreshSignIn: true,
        run: (visit, values) => makeKey(parts, visit, values),
      },
      revoke: revoking(parts),
      origins: settingOrigins(parts),
      // The form of this deed is on the page of a new key, and on no other.
      test: { access: 'keys.create', run: (visit, values) => testKey(parts, visit, values) },
    },
  };
}

async function makeKey({ keys, settings, writeAudit: note }: Parts, visit: Visit, values: FormValues): Promise<Answer> {
  const { project, environment } = scopeOf(visit);
  const isRefresh = values.text('deed') === 'refresh';
  const kind = kindOf(values);
  if (isRefresh) assertConfirmed(visit, values);
  if (project.state === 'archived') throw invalidField('project', 'The project is archived: it gets no key any more.');
  const name = values.text('name');
  if (name.length > NAME_CHARACTERS_MAX)
    throw invalidField('name', `A key's name has ${NAME_CHARACTERS_MAX} characters at most.`);
  const wanted: NewKey = {
    projectId: project.id,
    environmentId: environment.id,
    environment: environment.kind,
    kind,
    ...(name === '' ? {} : { name }),
  };
  const context = { store: keys.changedBy(visit.author), prefix: settings.keyPrefix };
  const made = isRefresh ? await refreshKey(context, wanted) : await createKey(context, wanted);
  if (kind === 'secret') await note(visit, { action: 'key.show', object: made.record.keyId });
  return toRevealed({ visit, kind, key: made.key, settings });
}

/** Whether a text is a live key of this environment; of another one's it says no more than of a text that nobody made. */
async function testKey({ keys }: Parts, visit: Visit, values: FormValues): Promise<Answer> {
  const { environment } = scopeOf(visit);
  const hash = hashKey(values.text('key'));
  const record = (await keys.all()).find(({ live }) => live?.hash === hash);
  const isGood = record !== undefined && record.environmentId === environment.id;
  const content = isGood
    ? html`<p>It is the live ${record.kind} key of ${environment.name}, and gateways take it.</p>`
    : html`<p>It is no live key of ${environment.name}: it was refreshed or revoked, or never made here.</p>`;
  const back = html`<p><a class="button" href="${visit.path}">Back to the keys</a></p>`;
  return { kind: 'page', title: isGood ? 'The key is good' : 'The key is not good', content: html`${content}${back}` };
}

const revoking = ({ keys }: Parts): FormAction => ({
  access: 'keys.revoke',
  needsFreshSignIn: true,
  run: async (visit, values) => {
    const { project, environment } = scopeOf(visit);
    assertConfirmed(visit, values);
    const wanted = { environmentId: environment.id, kind: kindOf(values) };
    await revokeKey({ store: keys.changedBy(visit.author) }, wanted);
    return { kind: 'see', to: `${environmentPath(project.id, environment.name)}/keys`, notice: 'revoked' };
  },
});

const settingOrigins = ({ keys }: Parts): FormAction => ({
  access: 'keys.origins',
  run: async (visit, values) => {
    const { project, environment } = scopeOf(visit);
    const origins = values
      .text('origins')
      .split(/[\s,]+/)
      .filter((text) => text !== '');
    await setKeyOrigins({ store: keys.changedBy(visit.author) }, { environmentId: environment.id, origins });
    return { kind: 'see', to: `${environmentPath(project.id, environment.name)}/keys`, notice: 'origins' };
  },
});

/** Ending a key stops clients at once, so the name of the environment has to be typed. */
function assertConfirmed(visit: Visit, values: FormValues): void {
  const { environment } = scopeOf(visit);
  if (values.text('confirm') === environment.name) return;
  throw invalidField('confirm', `Type the name of the environment, ${environment.name}, to end its key.`);
}

function kindOf(values: FormValues): KeyKind {
  const found = KINDS.find(({ kind }) => kind === values.text('kind'));
  if (found === undefined) throw invalidField('kind', 'A key is publishable or secret.');
  return found.kind;
}

/** Null where the counts cannot be read now: the keys are shown without them. */
type Uses = ReadonlyMap<string, KeyUse> | null;

async function readUses({ usage }: Parts, records: readonly KeyRecord[]): Promise<Uses> {
  const live = records.filter(({ revokedAt }) => revokedAt === null);
  return usage.readKeys(live.map(({ keyId }) => keyId)).catch(() => null);
}

interface Shown {
  readonly visit: Visit;
  readonly records: readonly KeyRecord[];
  readonly uses: Uses;
  readonly values?: FormValues;
}

function toContent(shown: Shown): HtmlValue {
  const ended = shown.records.filter(({ revokedAt }) => revokedAt !== null).toReversed();
  const rows = ended.map((record) => [
    record.kind,
    record.name,
    html`<code>${record.first4}…${record.last4}</code>`,
    time(record.createdAt),
    time(record.revokedAt ?? 0),
  ]);
  return html`${KINDS.map((of) => toSection({ ...shown, of }))}
${ended.length === 0 ? '' : disclosure(`Ended keys (${ended.length})`, table('Ended keys', ['Kind', 'Name', 'Key', 'Created', 'Ended'], rows))}`;
}

interface Section extends Shown {
  readonly of: (typeof KINDS)[number];
}

function toSection(section: Section): HtmlValue {
  const { visit, of, records, uses } = section;
  const live = records.find(({ kind, revokedAt }) => kind === of.kind && revokedAt === null);
  return html`<section aria-labelledby="${of.kind}"><h2 id="${of.kind}">${of.title}</h2><p class="quiet">${of.what}</p>
${live === undefined ? toCreate(section) : html`${toLive(live)}${of.kind === 'publishable' ? toOrigins(section, live) : ''}${toUse(uses === null ? null : (uses.get(live.keyId) ?? NO_USE))}${visit.mayDo('keys.refresh') ? toChanges(section) : ''}`}</section>`;
}

function toLive({ name, text, first4, last4, createdAt }: KeyRecord): HtmlValue {
  const shown = text === null ? html`<code>${first4}…${last4}</code>` : copyable(text, 'the key');
  return html`<dl><dt>Key</dt><dd>${shown}</dd>${name === '' ? '' : html`<dt>Name</dt><dd>${name}</dd>`}<dt>Created</dt><dd>${time(createdAt)}</dd></dl>`;
}

/** Whose pages may use the key. */
function toOrigins({ visit, values }: Section, { origins }: KeyRecord): HtmlValue {
  const shown =
    origins.length === 0 ? 'any' : html`<ul>${origins.map((origin) => html`<li><code>${origin}</code></li>`)}</ul>`;
  const isTyped = values?.text('deed') === 'origins';
  const form = visit.form(
    'origins',
    html`<p>Pages of other origins are refused with 401 within a second. Servers and clients that are no browser say no origin and may use the key all the same: it is no secret.</p>
${lines({ name: 'origins', label: 'Allowed origins', value: isTyped ? values.text('origins') : origins.join('\n'), hint: 'One a line, such as https://game.example or http://localhost:5173. None: pages of any origin.' })}
<button>Set the allowed origins</button>`,
  );
  return html`<dl><dt>Allowed origins</dt><dd>${shown}</dd></dl>
${visit.mayDo('keys.origins') ? disclosure('Change the allowed origins', form, isTyped) : ''}`;
}

/** As gateways have counted it: ten seconds late at most. */
function toUse(use: KeyUse | null): HtmlValue {
  if (use === null) return html`<p class="quiet">How the key is used cannot be told now.</p>`;
  const { lastUsedAt, usesOfHour, refusalsOfHour, lastRefusal } = use;
  const refusal =
    lastRefusal === null
      ? ''
      : html`<dt>Last refusal</dt><dd>${time(lastRefusal.at)}: ${lastRefusal.reason}, trace id ${copyable(lastRefusal.traceId, 'the trace id')}</dd>`;
  return html`<dl><dt>Last used</dt><dd>${lastUsedAt === null ? 'not yet, as far as is known' : time(lastUsedAt)}</dd>
<dt>Last hour</dt><dd>${number(usesOfHour, 'requests')}, ${number(refusalsOfHour)} of them refused</dd>${refusal}</dl>`;
}

function toCreate({ visit, of, values }: Section): HtmlValue {
  if (!visit.mayDo('keys.create'))
    return html`<p>There is none. A developer or an owner of the project can create one.</p>`;
  return visit.form(
    'create',
    html`${hidden('kind', of.kind)}
${field({ name: 'name', label: 'Name', value: values?.text('name') ?? '', hint: 'So that others know what it is for. May be left out.', charactersMax: NAME_CHARACTERS_MAX })}
<button>Create the ${of.kind} key</button>`,
  );
}

function toChanges({ visit, of, values }: Section): HtmlValue {
  const { environment } = scopeOf(visit);
  const isTyped = (deed: string) => values?.text('deed') === deed && values.text('kind') === of.kind;
  const confirm = html`${hidden('kind', of.kind)}
${field({ name: 'confirm', label: `Type ${environment.name} to go on`, isRequired: true })}`;
  const refresh = visit.form(
    'refresh',
    html`<p>The old key stops within a second on every gateway. Its successor is shown at once.</p>${confirm}<button>Refresh the ${of.kind} key</button>`,
  );
  const revoke = visit.form(
    'revoke',
    html`<p>The key stops within a second on every gateway, and there is none afterwards until one is created.</p>${confirm}<button class="danger">Revoke the ${of.kind} key</button>`,
  );
  return html`${disclosure(`Refresh the ${of.kind} key`, refresh, isTyped('refresh'))}
${disclosure(`Revoke the ${of.kind} key`, revoke, isTyped('revoke'))}`;
}

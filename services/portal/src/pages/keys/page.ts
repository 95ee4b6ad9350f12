/** Publishable and secret key of an environment. */
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
import type { Answer, FormAction, FormValues, PortalPage, Visit } from '../../frame/page.ts';
import { scopeOf } from '../../frame/scope.ts';
import type { PagesParts } from '../index.ts';
import { toRevealed } from './revealed.ts';

type Parts = Pick<PagesParts, 'keys' | 'usage' | 'settings' | 'writeAudit'>;

const KINDS: readonly { kind: KeyKind; title: string; what: string }[] = [
  { kind: 'publishable', title: 'Publishable key', what: 'Game clients send messages with it. It is not a secret.' },
  {
    kind: 'secret',
    title: 'Secret key',
    what: 'Servers request erasures with it. It is shown only once, when you create it.',
  },
];

const NAME_CHARACTERS_MAX = 100;

export function createKeysPage(parts: Parts): PortalPage {
  return {
    path: '/projects/:project/environments/:environment/keys',
    access: 'keys.read',
    notices: {
      origins: 'Allowed origins saved. All gateways apply them within a second.',
      revoked: 'Key revoked. All gateways reject it within a second.',
    },
    show: async (visit, fault) => {
      const { project, environment } = scopeOf(visit);
      const records = keysOfProject(await parts.keys.all(), project.id).filter(
        ({ environmentId }) => environmentId === environment.id,
      );
      const uses = await readUses(parts, records);
      const content = toContent({ visit, records, uses, values: fault?.values });
      return { kind: 'page', title: `Keys of ${environment.name}`, content };
    },
    actions: {
      create: { access: 'keys.create', needsFreshSignIn: true, run: (...form) => makeKey(parts, ...form) },
      refresh: { access: 'keys.refresh', needsFreshSignIn: true, run: (...form) => makeKey(parts, ...form) },
      revoke: revokeAction(parts),
      origins: originsAction(parts),
      // Its form is on the page of a new key.
      test: { access: 'keys.create', run: (...form) => testKey(parts, ...form) },
    },
  };
}

async function makeKey({ keys, settings, writeAudit }: Parts, visit: Visit, values: FormValues): Promise<Answer> {
  const { project, environment } = scopeOf(visit);
  const isRefresh = values.text('form') === 'refresh';
  const kind = kindOf(values);
  if (isRefresh) assertConfirmed(visit, values);
  if (project.state === 'archived') throw invalidField('project', 'The project is archived and gets no new keys.');
  const name = values.text('name');
  if (name.length > NAME_CHARACTERS_MAX)
    throw invalidField('name', `Enter a name of at most ${NAME_CHARACTERS_MAX} characters.`);
  const newKey: NewKey = {
    projectId: project.id,
    environmentId: environment.id,
    environment: environment.kind,
    kind,
    ...(name === '' ? {} : { name }),
  };
  const context = { store: keys.changedBy(visit.author), prefix: settings.keyPrefix };
  const { key, record } = isRefresh ? await refreshKey(context, newKey) : await createKey(context, newKey);
  if (kind === 'secret') await writeAudit(visit, { action: 'key.show', object: record.keyId });
  return toRevealed(visit, kind, key, settings);
}

/** Reports no difference between a key of another environment and a text that is no key. */
async function testKey({ keys }: Parts, visit: Visit, values: FormValues): Promise<Answer> {
  const { environment } = scopeOf(visit);
  const hash = hashKey(values.text('key'));
  const record = (await keys.all()).find(({ live }) => live?.hash === hash);
  const isValid = record !== undefined && record.environmentId === environment.id;
  const result = isValid
    ? html`<p>This is the live ${record.kind} key of ${environment.name}. Gateways accept it.</p>`
    : html`<p>This is not a live key of ${environment.name}. It was refreshed, revoked or never created here.</p>`;
  const content = html`${result}<p><a class="button" href="${visit.path}">Back to keys</a></p>`;
  return { kind: 'page', title: isValid ? 'Key is valid' : 'Key is not valid', content };
}

const revokeAction = ({ keys }: Parts): FormAction => ({
  access: 'keys.revoke',
  needsFreshSignIn: true,
  run: async (visit, values) => {
    assertConfirmed(visit, values);
    const key = { environmentId: scopeOf(visit).environment.id, kind: kindOf(values) };
    await revokeKey({ store: keys.changedBy(visit.author) }, key);
    return { kind: 'redirect', notice: 'revoked' };
  },
});

const originsAction = ({ keys }: Parts): FormAction => ({
  access: 'keys.origins',
  run: async (visit, values) => {
    const origins = values
      .text('origins')
      .split(/[\s,]+/)
      .filter((text) => text !== '');
    const environmentId = scopeOf(visit).environment.id;
    await setKeyOrigins({ store: keys.changedBy(visit.author) }, { environmentId, origins });
    return { kind: 'redirect', notice: 'origins' };
  },
});

/** Clients stop working with a key immediately, so the environment must be typed. */
function assertConfirmed(visit: Visit, values: FormValues): void {
  const { name } = scopeOf(visit).environment;
  if (values.text('confirm') === name) return;
  throw invalidField('confirm', `Type the name of the environment, ${name}, to confirm.`);
}

function kindOf(values: FormValues): KeyKind {
  const found = KINDS.find(({ kind }) => kind === values.text('kind'));
  if (found === undefined) throw invalidField('kind', 'Choose publishable or secret.');
  return found.kind;
}

type Uses = ReadonlyMap<string, KeyUse> | null;

async function readUses({ usage }: Parts, records: readonly KeyRecord[]): Promise<Uses> {
  const live = records.filter(({ revokedAt }) => revokedAt === null);
  return usage.readKeys(live.map(({ keyId }) => keyId)).catch(() => null);
}

interface Shown {
  readonly visit: Visit;
  readonly records: readonly KeyRecord[];
  readonly uses: Uses;
  readonly values: FormValues | undefined;
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
  const heads = ['Kind', 'Name', 'Key', 'Created', 'Revoked'];
  return html`${KINDS.map((of) => toSection({ ...shown, of }))}
${ended.length === 0 ? '' : disclosure(`Revoked keys (${ended.length})`, table('Revoked keys', heads, rows))}`;
}

interface Section extends Shown {
  readonly of: (typeof KINDS)[number];
}

function toSection(section: Section): HtmlValue {
  const { visit, of, records, uses } = section;
  const live = records.find(({ kind, revokedAt }) => kind === of.kind && revokedAt === null);
  const shown = (key: KeyRecord) =>
    html`${toLive(key)}${of.kind === 'publishable' ? toOrigins(section, key) : ''}${toUse(uses === null ? null : (uses.get(key.keyId) ?? NO_USE))}${visit.mayDo('keys.refresh') ? toChanges(section) : ''}`;
  return html`<section aria-labelledby="${of.kind}"><h2 id="${of.kind}">${of.title}</h2><p class="quiet">${of.what}</p>
${live === undefined ? toCreate(section) : shown(live)}</section>`;
}

function toLive({ name, text, first4, last4, createdAt }: KeyRecord): HtmlValue {
  const shown = text === null ? html`<code>${first4}…${last4}</code>` : copyable(text, 'the key');
  return html`<dl><dt>Key</dt><dd>${shown}</dd>${name === '' ? '' : html`<dt>Name</dt><dd>${name}</dd>`}<dt>Created</dt><dd>${time(createdAt)}</dd></dl>`;
}

function toOrigins({ visit, values }: Section, { origins }: KeyRecord): HtmlValue {
  const shown =
    origins.length === 0 ? 'any' : html`<ul>${origins.map((origin) => html`<li><code>${origin}</code></li>`)}</ul>`;
  const isTyped = values?.text('form') === 'origins';
  const form = visit.form(
    'origins',
    html`<p>Pages of other origins get 401 within a second. Servers and native clients send no origin and can still use the key: it is not a secret.</p>
${lines({ name: 'origins', label: 'Allowed origins', value: isTyped ? values.text('origins') : origins.join('\n'), hint: 'One per line, such as https://game.example or http://localhost:5173. Empty: pages of any origin.' })}
<button>Save allowed origins</button>`,
  );
  return html`<dl><dt>Allowed origins</dt><dd>${shown}</dd></dl>
${visit.mayDo('keys.origins') ? disclosure('Change the allowed origins', form, isTyped) : ''}`;
}

/** From the gateways' counters, at most ten seconds late. */
function toUse(use: KeyUse | null): HtmlValue {
  if (use === null) return html`<p class="quiet">The use of this key is not available now.</p>`;
  const { lastUsedAt, usesOfHour, refusalsOfHour, lastRefusal } = use;
  const refusal =
    lastRefusal === null
      ? ''
      : html`<dt>Last refusal</dt><dd>${time(lastRefusal.at)}: ${lastRefusal.reason}, trace id ${copyable(lastRefusal.traceId, 'the trace id')}</dd>`;
  return html`<dl><dt>Last used</dt><dd>${lastUsedAt === null ? 'never' : time(lastUsedAt)}</dd>
<dt>Last hour</dt><dd>${number(usesOfHour, 'requests')}, ${number(refusalsOfHour)} refused</dd>${refusal}</dl>`;
}

function toCreate({ visit, of, values }: Section): HtmlValue {
  if (!visit.mayDo('keys.create')) return html`<p>No key yet. A developer or owner of the project can create one.</p>`;
  return visit.form(
    'create',
    html`${hidden('kind', of.kind)}
${field({ name: 'name', label: 'Name', value: values?.text('name') ?? '', hint: 'Optional. What the key is for.', charactersMax: NAME_CHARACTERS_MAX })}
<button>Create ${of.kind} key</button>`,
  );
}

function toChanges({ visit, of, values }: Section): HtmlValue {
  const { environment } = scopeOf(visit);
  const isTyped = (action: string) => values?.text('form') === action && values.text('kind') === of.kind;
  const confirm = html`${hidden('kind', of.kind)}
${field({ name: 'confirm', label: `Type ${environment.name} to confirm`, isRequired: true })}`;
  const refresh = visit.form(
    'refresh',
    html`<p>All gateways reject the old key within a second. The new key is shown next.</p>${confirm}<button>Refresh ${of.kind} key</button>`,
  );
  const revoke = visit.form(
    'revoke',
    html`<p>All gateways reject the key within a second. The environment has no ${of.kind} key until you create one.</p>${confirm}<button class="danger">Revoke ${of.kind} key</button>`,
  );
  return html`${disclosure(`Refresh the ${of.kind} key`, refresh, isTyped('refresh'))}
${disclosure(`Revoke the ${of.kind} key`, revoke, isTyped('revoke'))}`;
}

/** The publishable key and the secret key of an environment. */
import {
  changeKey,
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
} from '@playline/access-keys';
import { type HtmlValue, html } from '@playline/api-docs';
import { invalidField } from '@playline/errors';
import { copyable, disclosure, field, hidden, multilineField, number, table, time } from '../../frame/components.ts';
import type { FormAction, FormValues, PageResponse, PortalPage, Visit } from '../../frame/page.ts';
import { scopeOf } from '../../frame/scope.ts';
import type { PageParts } from '../index.ts';
import { toNewKeyPage } from './new-key.ts';

type Parts = Pick<PageParts, 'keys' | 'usage' | 'settings' | 'writeAudit'>;

const KINDS: readonly { kind: KeyKind; title: string; hint: string }[] = [
  { kind: 'publishable', title: 'Publishable key', hint: 'Game clients send messages with this key. It is public.' },
  {
    kind: 'secret',
    title: 'Secret key',
    hint: 'Your servers use this key to request erasures and mints. It is shown only once, when you create it.',
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
    show: async (visit, failure) => {
      const { project, environment } = scopeOf(visit);
      const records = keysOfProject(await parts.keys.all(), project.id).filter(
        ({ environmentId }) => environmentId === environment.id,
      );
      const uses = await readUsage(parts, records);
      const content = toContent({ visit, records, uses, values: failure?.values });
      return { kind: 'page', title: `Keys in ${environment.name}`, content };
    },
    actions: {
      create: { access: 'keys.create', needsFreshSignIn: true, run: (...form) => issueKey(parts, ...form) },
      refresh: { access: 'keys.refresh', needsFreshSignIn: true, run: (...form) => issueKey(parts, ...form) },
      revoke: revokeAction(parts),
      origins: originsAction(parts),
      // This form is on the page that shows a new key.
      test: { access: 'keys.create', run: (...form) => testKey(parts, ...form) },
    },
  };
}

async function issueKey(parts: Parts, visit: Visit, values: FormValues): Promise<PageResponse> {
  const { keys, settings, writeAudit } = parts;
  const { project, environment } = scopeOf(visit);
  const [isRefresh, kind] = [values.text('form') === 'refresh', readKind(values)];
  if (isRefresh) assertConfirmed(visit, values);
  if (project.state === 'archived') throw invalidField('project', 'The project is archived. You cannot create keys.');
  const name = values.text('name');
  if (name.length > NAME_CHARACTERS_MAX)
    throw invalidField('name', `Enter a name with at most ${NAME_CHARACTERS_MAX} characters.`);
  const newKey: NewKey = {
    projectId: project.id,
    environmentId: environment.id,
    environment: environment.kind,
    kind,
    ...(name === '' ? {} : { name }),
  };
  const context = { store: keys.storeFor(visit.author), prefix: settings.keyPrefix };
  const { key, record } = isRefresh ? await refreshKey(context, newKey) : await createKey(context, newKey);
  if (kind === 'secret') await writeAudit(visit, { action: 'key.show', object: record.keyId });
  return toNewKeyPage(visit, kind, key, settings);
}

/** The response does not reveal whether the key exists in another environment. */
async function testKey({ keys }: Parts, visit: Visit, values: FormValues): Promise<PageResponse> {
  const { environment } = scopeOf(visit);
  const hash = hashKey(values.text('key'));
  const record = (await keys.all()).find(({ live }) => live?.hash === hash);
  const isValid = record !== undefined && record.environmentId === environment.id;
  const result = isValid
    ? html`<p>This is the current ${record.kind} key for ${environment.name}. Gateways accept it.</p>`
    : html`<p>This key does not work in ${environment.name}. It was refreshed, revoked or never created here.</p>`;
  const content = html`${result}<p><a class="button" href="${visit.path}">Back to keys</a></p>`;
  return { kind: 'page', title: isValid ? 'Key is valid' : 'Key is not valid', content };
}

const revokeAction = ({ keys }: Parts): FormAction => ({
  access: 'keys.revoke',
  needsFreshSignIn: true,
  run: async (visit, values) => {
    assertConfirmed(visit, values);
    const key = { environmentId: scopeOf(visit).environment.id, kind: readKind(values) };
    await revokeKey({ store: keys.storeFor(visit.author) }, key);
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
    await changeKey({ store: keys.storeFor(visit.author) }, { environmentId, origins });
    return { kind: 'redirect', notice: 'origins' };
  },
});

/** Requires the user to type the environment's name, because clients lose access immediately. */
function assertConfirmed(visit: Visit, values: FormValues): void {
  const { name } = scopeOf(visit).environment;
  if (values.text('confirm') === name) return;
  throw invalidField('confirm', `Type the environment name, ${name}, to confirm.`);
}

function readKind(values: FormValues): KeyKind {
  const found = KINDS.find(({ kind }) => kind === values.text('kind'));
  if (found === undefined) throw invalidField('kind', 'Choose publishable or secret.');
  return found.kind;
}

type Uses = ReadonlyMap<string, KeyUse> | null;

async function readUsage({ usage }: Parts, records: readonly KeyRecord[]): Promise<Uses> {
  const live = records.filter(({ revokedAt }) => revokedAt === null);
  return usage.readKeys(live.map(({ keyId }) => keyId)).catch(() => null);
}

interface KeysView {
  readonly visit: Visit;
  readonly records: readonly KeyRecord[];
  readonly uses: Uses;
  readonly values: FormValues | undefined;
}

function toContent(view: KeysView): HtmlValue {
  const revoked = view.records.filter(({ revokedAt }) => revokedAt !== null).toReversed();
  const rows = revoked.map((record) => [
    record.kind,
    record.name,
    html`<code>${record.first4}…${record.last4}</code>`,
    time(record.createdAt),
    time(record.revokedAt ?? 0),
  ]);
  const columns = ['Type', 'Name', 'Key', 'Created', 'Revoked'];
  return html`${KINDS.map((keyKind) => toSection({ ...view, keyKind }))}
${revoked.length === 0 ? '' : disclosure(`Revoked keys (${revoked.length})`, table('Revoked keys', columns, rows))}`;
}

interface Section extends KeysView {
  readonly keyKind: (typeof KINDS)[number];
}

function toSection(section: Section): HtmlValue {
  const { visit, keyKind, records, uses } = section;
  const { kind, title, hint } = keyKind;
  const live = records.find((key) => key.kind === kind && key.revokedAt === null);
  const toLiveKey = (key: KeyRecord) =>
    html`${toDetails(key)}${kind === 'publishable' ? toOrigins(section, key) : ''}${toUsage(uses === null ? null : (uses.get(key.keyId) ?? NO_USE))}${visit.can('keys.refresh') ? toKeyForms(section) : ''}`;
  return html`<section aria-labelledby="${kind}"><h2 id="${kind}">${title}</h2><p class="quiet">${hint}</p>
${live === undefined ? toCreateForm(section) : toLiveKey(live)}</section>`;
}

function toDetails({ name, text, first4, last4, createdAt }: KeyRecord): HtmlValue {
  const shown = text === null ? html`<code>${first4}…${last4}</code>` : copyable(text, 'the key');
  return html`<dl><dt>Key</dt><dd>${shown}</dd>${name === '' ? '' : html`<dt>Name</dt><dd>${name}</dd>`}<dt>Created</dt><dd>${time(createdAt)}</dd></dl>`;
}

function toOrigins({ visit, values }: Section, { origins }: KeyRecord): HtmlValue {
  const shown =
    origins.length === 0 ? 'any' : html`<ul>${origins.map((origin) => html`<li><code>${origin}</code></li>`)}</ul>`;
  const isSubmitted = values?.text('form') === 'origins';
  const form = visit.form(
    'origins',
    html`<p>Within a second, gateways respond with 401 to pages from other origins. Servers and native clients do not send an origin, so they can still use the key.</p>
${multilineField({ name: 'origins', label: 'Allowed origins', value: isSubmitted ? values.text('origins') : origins.join('\n'), hint: 'One origin per line, such as https://game.example or http://localhost:5173. Leave empty to allow all origins.' })}
<button>Save allowed origins</button>`,
  );
  return html`<dl><dt>Allowed origins</dt><dd>${shown}</dd></dl>
${visit.can('keys.origins') ? disclosure('Change allowed origins', form, isSubmitted) : ''}`;
}

/** Uses counters from the gateways, which lag by up to ten seconds. */
function toUsage(use: KeyUse | null): HtmlValue {
  if (use === null) return html`<p class="quiet">Usage data for this key is currently unavailable.</p>`;
  const { lastUsedAt, usesOfHour, refusalsOfHour, lastRefusal } = use;
  const refusal =
    lastRefusal === null
      ? ''
      : html`<dt>Last refused request</dt><dd>${time(lastRefusal.at)}: ${lastRefusal.reason}, trace id ${copyable(lastRefusal.traceId, 'the trace id')}</dd>`;
  return html`<dl><dt>Last used</dt><dd>${lastUsedAt === null ? 'never' : time(lastUsedAt)}</dd>
<dt>Last hour</dt><dd>${number(usesOfHour, usesOfHour === 1 ? 'request' : 'requests')}, ${number(refusalsOfHour)} refused</dd>${refusal}</dl>`;
}

function toCreateForm({ visit, keyKind: { kind }, values }: Section): HtmlValue {
  if (!visit.can('keys.create')) return html`<p>No key yet. A developer or owner of the project can create one.</p>`;
  return visit.form(
    'create',
    html`${hidden('kind', kind)}
${field({ name: 'name', label: 'Name', value: values?.text('name') ?? '', hint: 'Optional. What the key is used for.', maxLength: NAME_CHARACTERS_MAX })}
<button>Create ${kind} key</button>`,
  );
}

function toKeyForms({ visit, keyKind: { kind }, values }: Section): HtmlValue {
  const { environment } = scopeOf(visit);
  const isSubmitted = (action: string) => values?.text('form') === action && values.text('kind') === kind;
  const confirm = html`${hidden('kind', kind)}
${field({ name: 'confirm', label: `Type ${environment.name} to confirm`, isRequired: true })}`;
  const refresh = visit.form(
    'refresh',
    html`<p>This creates a new key. All gateways reject the old key within a second.</p>${confirm}<button>Refresh ${kind} key</button>`,
  );
  const revoke = visit.form(
    'revoke',
    html`<p>All gateways reject the key within a second. The environment has no ${kind} key until you create a new one.</p>${confirm}<button class="danger">Revoke ${kind} key</button>`,
  );
  return html`${disclosure(`Refresh the ${kind} key`, refresh, isSubmitted('refresh'))}
${disclosure(`Revoke the ${kind} key`, revoke, isSubmitted('revoke'))}`;
}

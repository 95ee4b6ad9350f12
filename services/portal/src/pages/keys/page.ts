/** The publishable keys and the secret key of an environment. */
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
  parseInstant,
  refreshKey,
  revokeKey,
  setKeyEnd,
} from '@playline/access-keys';
import { type HtmlValue, html } from '@playline/api-docs';
import { invalidField } from '@playline/errors';
import {
  choice,
  disclosure,
  duration,
  field,
  hidden,
  keyValues,
  multilineField,
  number,
  panel,
  shortened,
  status,
  table,
  time,
} from '../../frame/components.ts';
import type { FormAction, FormValues, PageResponse, PortalPage, Visit } from '../../frame/page.ts';
import { scopeOf } from '../../frame/scope.ts';
import type { PageParts } from '../index.ts';
import { toNewKeyPage } from './new-key.ts';

type Parts = Pick<PageParts, 'keys' | 'usage' | 'settings' | 'writeAudit' | 'frame'>;

const NAME_CHARACTERS_MAX = 100;

export function createKeysPage(parts: Parts): PortalPage {
  return {
    path: '/projects/:project/environments/:environment/keys',
    access: 'keys.read',
    notices: {
      saved: 'Key saved. All gateways apply the change within a second.',
      revoked: 'Key revoked. All gateways reject it within a second.',
    },
    show: async (visit, failure) => {
      const keys = await readKeys(parts, visit);
      const uses = await parts.usage.readKeys(keys.map(({ keyId }) => keyId)).catch(() => null);
      const view = { visit, keys, uses, values: failure?.values, nowMs: parts.frame.wallClockMs() };
      const content = html`${toPublishable(view)}${toSecret(view)}${toEnded(view)}`;
      return { kind: 'page', title: 'Keys', content };
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

async function readKeys({ keys }: Pick<Parts, 'keys'>, visit: Visit): Promise<readonly KeyRecord[]> {
  const { project, environment } = scopeOf(visit);
  return keysOfProject(await keys.all(), project.id).filter(({ environmentId }) => environmentId === environment.id);
}

async function issueKey(parts: Parts, visit: Visit, values: FormValues): Promise<PageResponse> {
  const { keys, settings, writeAudit } = parts;
  const { project, environment } = scopeOf(visit);
  const isRefresh = values.text('form') === 'refresh';
  const { kind, keyId } = readTarget(values);
  const stops = isRefresh ? readStop(visit, values) : 'now';
  if (stops === null) throw invalidField('stops', 'Choose when the old key stops.');
  if (project.state === 'archived') throw invalidField('project', 'The project is archived. You cannot create keys.');
  const name = readName(values);
  const live = (await readKeys(parts, visit)).filter((key) => key.kind === kind && key.revokedAt === null);
  if (!isRefresh && kind === 'publishable' && name === '' && live.length > 0)
    throw invalidField('name', 'Enter a name, such as iOS 2.4, to distinguish the keys of this environment.');
  const newKey: NewKey = {
    projectId: project.id,
    environmentId: environment.id,
    environment: environment.kind,
    kind,
    ...(name === '' ? {} : { name }),
  };
  const context = { store: keys.storeFor(visit.author), prefix: settings.keyPrefix };
  const endsAt = stops === 'now' ? undefined : stops;
  const { key, record } = isRefresh
    ? await refreshKey(context, { ...newKey, keyId, endsAt })
    : await createKey(context, newKey);
  if (kind === 'secret') await writeAudit(visit, { action: 'key.show', object: record.keyId });
  return toNewKeyPage(visit, { kind, key, oldEndsAt: endsAt ?? null }, settings);
}

/** The response does not reveal whether the key exists in another environment. */
async function testKey(parts: Parts, visit: Visit, values: FormValues): Promise<PageResponse> {
  const { environment } = scopeOf(visit);
  const hash = hashKey(values.text('key'));
  const record = (await readKeys(parts, visit)).find((key) => key.hash === hash && key.revokedAt === null);
  const result =
    record === undefined
      ? html`<p>This key does not work in ${environment.name}. It was refreshed, revoked or never created here.</p>`
      : html`<p>This is a live ${record.kind} key for ${environment.name}. Gateways accept it.</p>`;
  const content = html`${result}<p><a class="button" href="${visit.path}">Back to keys</a></p>`;
  return { kind: 'page', title: record === undefined ? 'Key is not valid' : 'Key is valid', content };
}

const revokeAction = ({ keys }: Parts): FormAction => ({
  access: 'keys.revoke',
  needsFreshSignIn: true,
  run: async (visit, values) => {
    const endsAt = readStop(visit, values);
    const context = { store: keys.storeFor(visit.author) };
    const key = { environmentId: scopeOf(visit).environment.id, ...readTarget(values) };
    if (endsAt === 'now') await revokeKey(context, key);
    else await setKeyEnd(context, { ...key, endsAt });
    return { kind: 'redirect', notice: endsAt === 'now' ? 'revoked' : 'saved' };
  },
});

const originsAction = ({ keys }: Parts): FormAction => ({
  access: 'keys.origins',
  run: async (visit, values) => {
    const origins = values
      .text('origins')
      .split(/[\s,]+/)
      .filter((text) => text !== '');
    const { environment } = scopeOf(visit);
    const keyId = values.text('key') || undefined;
    const key = { environmentId: environment.id, keyId, name: readName(values), origins };
    await changeKey({ store: keys.storeFor(visit.author) }, key);
    return { kind: 'redirect', notice: 'saved' };
  },
});

function readName(values: FormValues): string {
  const name = values.text('name').trim();
  if (name.length <= NAME_CHARACTERS_MAX) return name;
  throw invalidField('name', `Enter a name with at most ${NAME_CHARACTERS_MAX} characters.`);
}

/** Returns when a key stops; null for never. A key stops now only if the user types the environment's name. */
function readStop(visit: Visit, values: FormValues): 'now' | number | null {
  if (readTarget(values).kind === 'secret' || values.text('stops') === 'now') {
    const { name } = scopeOf(visit).environment;
    if (values.text('confirm') === name) return 'now';
    throw invalidField('confirm', `Type the environment name, ${name}, to confirm that the key stops now.`);
  }
  const stops = values.text('stops') === 'date' ? values.text('date') : values.text('stops');
  if (stops === 'never') return null;
  const endsAt = parseInstant(stops);
  if (endsAt === null) throw invalidField('stops', 'Choose when the key stops.');
  return endsAt;
}

function readTarget(values: FormValues): { kind: KeyKind; keyId: string | undefined } {
  const [kind, keyId] = [values.text('kind'), values.text('key') || undefined];
  if (kind === 'publishable' || kind === 'secret') return { kind, keyId };
  throw invalidField('kind', 'Choose publishable or secret.');
}

interface KeysView {
  readonly visit: Visit;
  readonly keys: readonly KeyRecord[];
  /** Null if the counters cannot be read. */
  readonly uses: ReadonlyMap<string, KeyUse> | null;
  readonly values: FormValues | undefined;
  readonly nowMs: number;
}

const liveOf = ({ keys }: KeysView, kind: KeyKind) => keys.filter((key) => key.kind === kind && key.revokedAt === null);

const useOf = ({ uses }: KeysView, { keyId }: KeyRecord): KeyUse | null => uses && (uses.get(keyId) ?? NO_USE);

/** Only the forms of publishable keys contain an id. */
const isSubmitted = ({ values }: KeysView, form: string, { kind, keyId }: Pick<KeyRecord, 'kind' | 'keyId'>) =>
  values?.text('form') === form &&
  (kind === 'secret' ? values.text('kind') === kind : values.text('key') === keyId && values.text('kind') !== 'secret');

function toPublishable(view: KeysView): HtmlValue {
  const { visit, nowMs } = view;
  const keys = liveOf(view, 'publishable');
  const docs = html`<a class="docs" href="/docs/keys">How to rotate keys</a>`;
  const note = html`Game clients send messages with these keys. They are public. ${docs}`;
  const create = toCreateForm(view, 'publishable');
  const first = html`<p>Add a key to a game client, and the events that it sends are counted here.</p>${create}`;
  if (keys.length === 0) return panel('Publishable keys', first, { note });
  const rows = keys.map((key) => {
    const use = useOf(view, key);
    const state =
      key.endsAt === null ? status('ok', 'live') : status('warn', `stops in ${duration(key.endsAt - nowMs)}`);
    const counts = [use?.messagesOfHour, use?.messagesOfDay].map((count) =>
      count === undefined ? '–' : number(count),
    );
    const name = key.name === '' ? html`<span class="muted">Unnamed</span>` : key.name;
    const cells = [
      name,
      shortened(key.text ?? '', 'the key'),
      toLastUse(use),
      ...counts,
      html`${state} ${toRefused(use)}`,
    ];
    const isOpen = ['refresh', 'revoke', 'origins'].some((form) => isSubmitted(view, form, key));
    return { cells, detail: toDetail(view, key), isOpen };
  });
  const right = (text: string) => ({ text, align: 'right' }) as const;
  const headers = ['Name', 'Key', 'Last used', right('Events, last hour'), right('Last 24 hours'), 'State'];
  return html`${panel('Publishable keys', table('Publishable keys', headers, rows), { note })}
${visit.can('keys.create') ? disclosure('Create another publishable key', create, isSubmitted(view, 'create', { kind: 'publishable', keyId: '' })) : ''}`;
}

function toDetail(view: KeysView, key: KeyRecord): HtmlValue {
  const { kind, name, origins, createdAt, endsAt } = key;
  const use = useOf(view, key);
  const rows: [string, HtmlValue][] =
    kind === 'secret'
      ? [
          ['Key', toMasked(key)],
          ['Name', name || '–'],
          ['Last used', toLastUse(use)],
        ]
      : [['Allowed origins', origins.length === 0 ? 'any' : html`<code>${origins.join(' ')}</code>`]];
  if (endsAt !== null) rows.push(['Stops', time(endsAt)]);
  return html`${keyValues([...rows, ['Created', time(createdAt)], ...toUsage(use)])}
<div class="key-forms">${toKeyForms(view, key)}${kind === 'publishable' && view.visit.can('keys.origins') ? toOriginsForm(view, key) : ''}</div>`;
}

const toMasked = ({ first4, last4 }: KeyRecord): HtmlValue => html`<code>${first4}…${last4}</code>`;

const toLastUse = (use: KeyUse | null): HtmlValue =>
  use === null ? 'currently unavailable' : use.lastUsedAt === null ? 'never' : time(use.lastUsedAt);

const toRefused = (use: KeyUse | null): HtmlValue =>
  use?.refusalsOfHour ? status('bad', `${number(use.refusalsOfHour)} refused in the last hour`) : '';

/** Uses counters from the gateways, which lag by up to ten seconds. */
function toUsage(use: KeyUse | null): [string, HtmlValue][] {
  const { usesOfHour, refusalsOfHour, lastRefusal } = use ?? NO_USE;
  const requests = `${number(usesOfHour, usesOfHour === 1 ? 'request' : 'requests')}, ${number(refusalsOfHour)} refused`;
  const rows: [string, HtmlValue][] = use === null ? [] : [['Last hour', requests]];
  if (lastRefusal === null) return rows;
  const { at, reason, traceId } = lastRefusal;
  const refusal = html`${time(at)}: ${reason}, trace id ${shortened(traceId, 'the trace id')}`;
  return [...rows, ['Last refused request', refusal]];
}

function toSecret(view: KeysView): HtmlValue {
  const [key] = liveOf(view, 'secret');
  const note = 'Your servers use this key to request erasures and mints. It is shown only once, when you create it.';
  return panel('Secret key', key === undefined ? toCreateForm(view, 'secret') : toDetail(view, key), { note });
}

function toEnded(view: KeysView): HtmlValue {
  const ended = view.keys.filter(({ revokedAt }) => revokedAt !== null).toReversed();
  if (ended.length === 0) return '';
  const inUse = ended.filter((key) => useOf(view, key)?.refusalsOfHour).length;
  const rows = ended.map((key) => {
    const { kind, name, createdAt, revokedAt } = key;
    const use = useOf(view, key);
    const ends = [time(createdAt), time(revokedAt ?? 0)];
    return [kind, name, toMasked(key), ...ends, toLastUse(use), toRefused(use) || '–'];
  });
  const headers = ['Type', 'Name', 'Key', 'Created', 'Ended', 'Last used', 'Refused requests'];
  const title = `Ended keys (${ended.length}${inUse === 0 ? '' : `, ${inUse} still in use`})`;
  return disclosure(title, table('Ended keys', headers, rows), inUse > 0);
}

function toCreateForm({ visit, values }: KeysView, kind: KeyKind): HtmlValue {
  const isPublishable = kind === 'publishable';
  if (!visit.can('keys.create')) return html`<p>No key yet. A developer or owner of the project can create one.</p>`;
  const hint = isPublishable
    ? 'The platform and build that will contain the key, such as iOS 2.4.'
    : 'Optional. What the key is used for.';
  const value = values?.text('form') === 'create' && values.text('kind') === kind ? values.text('name') : '';
  return visit.form(
    'create',
    html`${hidden('kind', kind)}
${field({ name: 'name', label: 'Name', value, hint, maxLength: NAME_CHARACTERS_MAX })}
<button>Create ${kind} key</button>`,
  );
}

function toOriginsForm(view: KeysView, key: KeyRecord): HtmlValue {
  const isOpen = isSubmitted(view, 'origins', key);
  const value = (name: string, current: string) => (isOpen ? (view.values?.text(name) ?? '') : current);
  const form = view.visit.form(
    'origins',
    html`${hidden('key', key.keyId)}
${field({ name: 'name', label: 'Name', value: value('name', key.name), maxLength: NAME_CHARACTERS_MAX })}
${multilineField({ name: 'origins', label: 'Allowed origins', value: value('origins', key.origins.join('\n')), hint: 'One origin per line, such as https://game.example or http://localhost:5173. Pages from other origins get 401. Servers and native clients send no origin and can always use the key. Leave empty to allow all origins.' })}
<button>Save key</button>`,
  );
  return disclosure('Change name or allowed origins', form, isOpen);
}

function toKeyForms(view: KeysView, key: KeyRecord): HtmlValue {
  const { visit } = view;
  const { kind, keyId, endsAt } = key;
  const isPublishable = kind === 'publishable';
  const ids = html`${hidden('kind', kind)}${isPublishable ? hidden('key', keyId) : ''}`;
  const refresh = visit.form(
    'refresh',
    isPublishable
      ? html`<p>Creates a key with the same allowed origins for your next build. The old key keeps working until it stops; both keys share one rate limit.</p>${ids}
${field({ name: 'name', label: 'Name of the new key', value: key.name, maxLength: NAME_CHARACTERS_MAX })}${toStopFields(view, key, 'The old key stops')}<button>Refresh publishable key</button>`
      : html`<p>This creates a new key. All gateways reject the old key within a second.</p>${ids}${toConfirm(view, true)}<button>Refresh secret key</button>`,
  );
  const revoke = visit.form(
    'revoke',
    isPublishable
      ? html`${ids}${toStopFields(view, key, 'The key stops', key.endsAt === null ? [] : [{ value: 'never', text: 'never' }])}<button class="danger">${endsAt === null ? 'Revoke publishable key' : 'Save'}</button>`
      : html`<p>All gateways reject the key within a second. The environment has no secret key until you create a new one.</p>${ids}${toConfirm(view, true)}<button class="danger">Revoke secret key</button>`,
  );
  const stopTitle = endsAt === null ? 'Revoke the key' : 'Change when the key stops';
  return html`${visit.can('keys.refresh') ? disclosure(isPublishable ? 'Refresh the key' : 'Refresh the secret key', refresh, isSubmitted(view, 'refresh', key)) : ''}
${visit.can('keys.revoke') ? disclosure(isPublishable ? stopTitle : 'Revoke the secret key', revoke, isSubmitted(view, 'revoke', key)) : ''}`;
}

const toConfirm = ({ visit }: KeysView, isRequired: boolean) =>
  field({ name: 'confirm', label: `Type ${scopeOf(visit).environment.name} to confirm`, isRequired });

/** Nothing is preselected, so that builds with the key never lose access by surprise. */
function toStopFields(
  view: KeysView,
  key: KeyRecord,
  label: string,
  added: readonly { value: string; text: string }[] = [],
): HtmlValue {
  const use = useOf(view, key);
  const submitted = (name: string) => (view.values?.text('key') === key.keyId ? view.values.text(name) : '');
  const traffic =
    use === null
      ? 'The usage of this key is currently unavailable.'
      : `Clients with this key sent ${number(use.messagesOfHour)} events in the last hour and ${number(use.messagesOfDay)} in the last 24 hours.`;
  const choices = [
    { value: '', text: 'Choose a time' },
    { value: '24h', text: 'in 24 hours' },
    { value: '7d', text: 'in 7 days' },
    { value: 'date', text: 'on a date' },
    { value: 'now', text: 'now' },
    ...added,
  ];
  return html`<p${use !== null && use.usesOfHour === 0 ? '' : html` class="notice warn"`}>${traffic} Builds that still contain the key when it stops lose their events.</p>
<div class="stops">${choice({ name: 'stops', label, value: submitted('stops'), choices })}
<div class="date">${field({ name: 'date', label: 'Date', type: 'date', value: submitted('date'), hint: 'The key stops at 00:00 UTC on this date.' })}</div>
<div class="confirm">${toConfirm(view, false)}</div></div>`;
}

/** Database credentials for analysts, with the snippets of their tools. */
import { readFileSync } from 'node:fs';
import { createCredentials, listCredentials, type OwnedAnalyst, revokeCredentials } from '@playline/access-keys';
import { type HtmlValue, html } from '@playline/api-docs';
import {
  buttonForm,
  copyable,
  copyableBlock,
  docsLink,
  field,
  keyValues,
  panel,
  status,
  table,
  tag,
  time,
} from '../../frame/components.ts';
import type { FormValues, PageResponse, PortalPage, Visit } from '../../frame/page.ts';
import { pageNotFound, scopeOf, signedInOf } from '../../frame/scope.ts';
import type { PageParts } from '../index.ts';

type Parts = Pick<PageParts, 'analysts' | 'accounts' | 'projects' | 'settings' | 'writeAudit'>;

const TOOLS = ['curl', 'Python', 'R', 'Grafana', 'Metabase', 'Superset', 'dbt'].map((tool) => {
  const file = new URL(`./snippets/${tool.toLowerCase()}.txt`, import.meta.url);
  return { tool, template: readFileSync(file, 'utf8').trimEnd() };
});

export function createConnectPage(parts: Parts): PortalPage {
  return {
    path: '/projects/:project/environments/:environment/connect',
    access: 'analysts.create',
    notices: { revoked: 'Credentials revoked. The database refuses them from the next query on.' },
    show: (visit, failure) => show(parts, visit, failure?.values),
    actions: {
      create: { access: 'analysts.create', needsFreshSignIn: true, run: (...form) => create(parts, ...form) },
      revoke: { access: 'analysts.create', needsFreshSignIn: true, run: (...form) => revoke(parts, ...form) },
    },
  };
}

function contextOf({ analysts }: Parts, visit: Visit) {
  if (analysts === null) throw pageNotFound();
  return { store: analysts, viewer: signedInOf(visit).account, projectId: scopeOf(visit).project.id };
}

async function create(parts: Parts, visit: Visit, values: FormValues): Promise<PageResponse> {
  const wanted = { name: values.text('name'), rawIds: values.text('raw-ids') === 'on' };
  const records = { accounts: await parts.accounts.all(), projects: await parts.projects.all() };
  const { account, password, rawIds } = await createCredentials(contextOf(parts, visit), wanted, records);
  await parts.writeAudit(visit, { action: 'analyst.create', object: account, detail: { rawIds } });
  // No other page shows the password.
  const content = html`<div class="secret"><p><strong>Copy the password now. It is shown only once.</strong></p>
${toValues({ User: account, Password: password })}${copyableBlock(`export CLICKHOUSE_PASSWORD=${password}`, 'the line')}</div>
${toPanels(parts, visit, account).tools}<p><a class="button" href="${visit.path}">Back to Connect</a></p>`;
  return { kind: 'page', title: 'Your new credentials', content };
}

async function revoke(parts: Parts, visit: Visit, values: FormValues): Promise<PageResponse> {
  const account = values.text('account');
  await revokeCredentials(contextOf(parts, visit), account);
  await parts.writeAudit(visit, { action: 'analyst.revoke', object: account });
  return { kind: 'redirect', notice: 'revoked' };
}

async function show(parts: Parts, visit: Visit, values?: FormValues): Promise<PageResponse> {
  const { analysts, accounts } = parts;
  const credentials = analysts === null ? [] : await listCredentials(contextOf(parts, visit));
  const names = new Map((await accounts.all()).map(({ id, name }) => [id, name]));
  const newest = credentials.findLast(({ owner }) => owner.accountId === visit.account?.id);
  const { connection, tools } = toPanels(parts, visit, newest?.account ?? 'YOUR_USER');
  const content = html`<p class="muted">Query the events of ${scopeOf(visit).environment.name} with SQL, from your own tools. The database is ClickHouse. Credentials can only read.</p>
<div class="split">${connection}
${panel('Create credentials', analysts === null ? UNAVAILABLE : toCreateForm(visit, values))}</div>
${panel('Credentials', toTable(visit, credentials, names))}
${tools}`;
  const cookbook = docsLink(`/docs/cookbook?environment=${scopeOf(visit).environment.id}`, 'Cookbook');
  const actions = html`${docsLink('/docs/analysts', 'Tables and columns')} ${cookbook}`;
  return { kind: 'page', title: 'Connect', actions, content };
}

const UNAVAILABLE = html`<p>This portal cannot create credentials, because its setting <code>CLICKHOUSE_ACCOUNTS_PASSWORD</code> is missing. An operator can create them with <code>npm run analysts -- create</code>.</p>`;

const toValues = (values: Readonly<Record<string, string>>) =>
  keyValues(Object.entries(values).map(([name, value]) => [name, copyable(value, `the ${name.toLowerCase()}`)]));

function toCreateForm(visit: Visit, values?: FormValues): HtmlValue {
  const isRaw = values?.text('raw-ids') === 'on' ? html` checked` : '';
  const rawIds = html`<label class="check"><input type="checkbox" name="raw-ids"${isRaw}> Include raw ids, page URLs and all properties, which may identify players</label>`;
  const name = values?.text('name') ?? '';
  const hint = 'Such as Metabase or my notebook. Use separate credentials for each tool.';
  const content = html`${field({ name: 'name', label: 'What are they for?', value: name, hint, isRequired: true, maxLength: 200 })}
${visit.can('people.raw-ids') ? rawIds : ''}<p class="hint">They read all environments of the project while you are a member.</p>
<button>Create credentials</button>`;
  return visit.form('create', content);
}

function toTable(visit: Visit, credentials: readonly OwnedAnalyst[], names: ReadonlyMap<string, string>): HtmlValue {
  if (credentials.length === 0)
    return html`<p class="muted">Your credentials will appear here. Create them to get a user and a password for a notebook, a dashboard or a script.</p>`;
  const rows = credentials.map(({ account, owner, rawIds, environments, createdAt }) => [
    owner.name,
    owner.accountId === visit.account?.id ? 'You' : (names.get(owner.accountId) ?? ''),
    copyable(account, 'the user'),
    environments.length === 0
      ? status('warn', rawIds ? 'needs the developer role' : 'nothing yet')
      : rawIds
        ? tag('raw ids')
        : 'events',
    time(createdAt),
    buttonForm(visit, 'revoke', { text: 'Revoke', name: owner.name, field: 'account', value: account }),
  ]);
  return table('Credentials', ['For', 'Member', 'User', 'Reads', 'Created', ''], rows);
}

/** The values of a connection, and the tools with snippets that contain all of them but the password. */
function toPanels({ settings: { clickhouseUrl: url } }: Parts, visit: Visit, user: string) {
  const { hostname, port, protocol } = new URL(url);
  const [standard, secure, Secure] = protocol === 'https:' ? ['443', 'true', 'True'] : ['80', 'false', 'False'];
  const environment = scopeOf(visit).environment.id;
  // The row policies in users.xml apply to this database only.
  const connection = { Host: hostname, Port: port || standard, Database: 'playline', Environment: environment };
  const values: Readonly<Record<string, string>> = { ...connection, url, User: user, secure, Secure };
  // Tabs that work without JavaScript.
  const tabs = TOOLS.map(({ tool, template }, index) => {
    const text = template.replace(/\{\{(\w+)\}\}/g, (_, name: string) => values[name] ?? '');
    return html`<input type="radio" name="tool" id="tool-${tool}" autocomplete="off"${index === 0 ? html` checked` : ''}><label for="tool-${tool}">${tool}</label><div class="pane">${copyableBlock(text, `the ${tool} snippet`)}</div>`;
  });
  const content = html`<fieldset class="tabs"><legend class="visually-hidden">Tool</legend>${tabs}</fieldset>`;
  const note = html`Snippets read the password from <code>CLICKHOUSE_PASSWORD</code>.`;
  return { connection: panel('Connection', toValues(connection)), tools: panel('Tools', content, { note }) };
}

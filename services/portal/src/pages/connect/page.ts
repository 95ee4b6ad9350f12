/** Database credentials for analysts, with the snippets of their tools. */

import { NoFreeAccount, type OwnedAnalyst, readableEnvironmentsOf, toName } from '@playline/access-keys';
import { type HtmlValue, html } from '@playline/api-docs';
import { PublicError } from '@playline/errors';
import {
  copyable,
  copyableBlock,
  disclosure,
  docsLink,
  field,
  hidden,
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
import { type Connection, toConnection, toSnippets } from './snippets.ts';

type Parts = Pick<PageParts, 'analysts' | 'accounts' | 'projects' | 'settings' | 'writeAudit'>;

export function createConnectPage(parts: Parts): PortalPage {
  return {
    path: '/projects/:project/environments/:environment/connect',
    access: 'analysts.create',
    notices: { revoked: 'Credentials revoked. The database refuses them from the next query on.' },
    show: async (visit, failure) => ({
      kind: 'page',
      title: 'Connect',
      content: toContent(parts, visit, await readView(parts, visit), failure?.values),
    }),
    actions: {
      create: { access: 'analysts.create', needsFreshSignIn: true, run: (...form) => create(parts, ...form) },
      revoke: { access: 'analysts.create', needsFreshSignIn: true, run: (...form) => revoke(parts, ...form) },
    },
  };
}

const CREDENTIALS_MAX = 5;

async function create({ analysts, accounts, projects, writeAudit, settings }: Parts, visit: Visit, values: FormValues) {
  const { project, environment } = scopeOf(visit);
  if (analysts === null) throw pageNotFound();
  const name = toName(values.text('name'), 'the credentials');
  const rawIds = values.text('raw-ids') === 'on' && visit.can('people.raw-ids');
  const owner = { accountId: signedInOf(visit).account.id, projectId: project.id, name };
  const isOwn = ({ owner: other }: OwnedAnalyst) =>
    other.accountId === owner.accountId && other.projectId === project.id;
  if ((await analysts.list()).filter(isOwn).length >= CREDENTIALS_MAX)
    throw conflict(
      `You already have ${CREDENTIALS_MAX} credentials in this project. Revoke one that you no longer use.`,
    );
  const { account, password } = await analysts.create({ owner, rawIds }).catch((fault: unknown) => {
    throw fault instanceof NoFreeAccount ? conflict(NO_FREE_ACCOUNT, fault) : fault;
  });
  const records = { accounts: await accounts.all(), projects: await projects.all() };
  for (const environmentId of readableEnvironmentsOf({ owner, rawIds }, records) ?? [])
    await analysts.setGrant(account, { environmentId, revoked: false });
  await writeAudit(visit, { action: 'analyst.create', object: account, detail: { rawIds } });
  const connection = toConnection(settings.clickhouseUrl, environment.id);
  return toCreatedPage(visit, { account, password, connection });
}

const NO_FREE_ACCOUNT =
  'All database accounts of this ClickHouse are in use. Revoke unused credentials, then contact an operator to restart the stack.';

const conflict = (message: string, cause?: Error) => new PublicError('CONFLICT_ERROR', { message, cause });

/** Members revoke their own credentials, owners those of every member of the project. */
async function revoke({ analysts, writeAudit }: Parts, visit: Visit, values: FormValues): Promise<PageResponse> {
  const account = values.text('account');
  const found = (await analysts?.list())?.find((each) => each.account === account);
  if (found === undefined || !isVisible(visit, found)) throw pageNotFound();
  await analysts?.drop(account);
  await writeAudit(visit, { action: 'analyst.revoke', object: account });
  return { kind: 'redirect', notice: 'revoked' };
}

function isVisible(visit: Visit, { owner }: OwnedAnalyst): boolean {
  const isOwn = owner.accountId === signedInOf(visit).account.id;
  return owner.projectId === scopeOf(visit).project.id && (isOwn || visit.can('analysts.revoke'));
}

interface View {
  readonly own: readonly OwnedAnalyst[];
  readonly others: readonly OwnedAnalyst[];
  readonly nameOf: (accountId: string) => string;
}

async function readView({ analysts, accounts }: Parts, visit: Visit): Promise<View> {
  const { id } = signedInOf(visit).account;
  const visible = ((await analysts?.list()) ?? []).filter((each) => isVisible(visit, each));
  const names = new Map((await accounts.all()).map((each) => [each.id, each.name]));
  return {
    own: visible.filter(({ owner }) => owner.accountId === id),
    others: visible.filter(({ owner }) => owner.accountId !== id),
    nameOf: (accountId) => names.get(accountId) ?? '',
  };
}

function toContent({ analysts, settings }: Parts, visit: Visit, { own, others, nameOf }: View, values?: FormValues) {
  const { environment } = scopeOf(visit);
  const connection = toConnection(settings.clickhouseUrl, environment.id);
  const user = own.toSorted((a, b) => b.createdAt - a.createdAt)[0]?.account ?? 'YOUR_USER';
  const unavailable = html`<p>This portal cannot create credentials, because its setting <code>CLICKHOUSE_ACCOUNTS_PASSWORD</code> is missing. An operator can create them with <code>npm run analysts -- create</code>.</p>`;
  return html`<p class="lead">Query the events of ${environment.name} with SQL, from your own tools. The database is ClickHouse; credentials can only read. ${docsLink(settings, '/docs/analysts', 'Tables and columns')} ${docsLink(settings, '/docs/cookbook', 'Cookbook')}</p>
<div class="split">${panel('Connection', toConnectionValues(connection))}
${panel('Create credentials', analysts === null ? unavailable : toCreateForm(visit, values))}</div>
${panel('Your credentials', own.length === 0 ? toNoCredentials() : toTable(visit, 'Your credentials', own))}
${others.length === 0 ? '' : panel('Credentials of members', toTable(visit, 'Credentials of members', others, nameOf), { note: 'Only owners see these.' })}
${toTools(connection, user)}`;
}

const toNoCredentials = () =>
  html`<p class="muted">You have no credentials in this project. Create them above: you get a user and a password for a notebook, a dashboard or a script.</p>`;

const toConnectionValues = ({ host, port, isSecure, database, environment }: Connection) =>
  keyValues([
    ['Host', copyable(host, 'the host')],
    ['Port', html`${copyable(port, 'the port')} <span class="muted">${isSecure ? 'HTTPS' : 'HTTP'}</span>`],
    ['Database', copyable(database, 'the database')],
    ['Environment', copyable(environment, 'the environment id')],
  ]);

function toCreateForm(visit: Visit, values?: FormValues): HtmlValue {
  const rawIds = html`<label class="check"><input type="checkbox" name="raw-ids"${values?.text('raw-ids') === 'on' ? html` checked` : ''}> Include raw ids, page URLs and all properties, which may identify players</label>`;
  return visit.form(
    'create',
    html`${field({ name: 'name', label: 'What are they for?', value: values?.text('name') ?? '', hint: 'Such as Metabase or my notebook. Use separate credentials for each tool.', isRequired: true, maxLength: 200 })}
${visit.can('people.raw-ids') ? rawIds : ''}
<p class="hint">They read all environments of the project for as long as you are a member.</p>
<button>Create credentials</button>`,
  );
}

function toTable(visit: Visit, caption: string, rows: readonly OwnedAnalyst[], nameOf?: View['nameOf']): HtmlValue {
  const headers = ['For', ...(nameOf === undefined ? [] : ['Member']), 'User', 'Reads', 'Created', ''];
  return table(
    caption,
    headers,
    rows.map(({ account, owner, rawIds, environments, createdAt }) => [
      owner.name,
      ...(nameOf === undefined ? [] : [nameOf(owner.accountId)]),
      copyable(account, 'the user'),
      environments.length === 0
        ? status('warn', rawIds ? 'nothing: raw ids require the developer role' : 'nothing yet')
        : html`${environments.length === 1 ? '1 environment' : `${environments.length} environments`} ${rawIds ? tag('raw ids') : ''}`,
      time(createdAt),
      visit.form(
        'revoke',
        html`${hidden('account', account)}<button class="outline">Revoke<span class="visually-hidden"> ${owner.name}</span></button>`,
        { className: 'inline' },
      ),
    ]),
  );
}

function toTools(connection: Connection, user: string): HtmlValue {
  const snippets = toSnippets(connection, user);
  const content = snippets.map(({ tool, text }, index) =>
    disclosure(tool, copyableBlock(text, `the ${tool} snippet`), index === 0),
  );
  return panel('Tools', content, { note: html`Snippets read the password from <code>CLICKHOUSE_PASSWORD</code>.` });
}

interface Created {
  readonly account: string;
  readonly password: string;
  readonly connection: Connection;
}

/** The only page that shows the password. */
function toCreatedPage(visit: Visit, { account, password, connection }: Created): PageResponse {
  const content = html`<div class="secret"><p><strong>Copy the password now. It is shown only once.</strong></p>
${keyValues([
  ['User', copyable(account, 'the user')],
  ['Password', copyable(password, 'the password')],
])}</div>
${panel('Connection', toConnectionValues(connection))}
${panel('Set the password for the snippets', copyableBlock(`export CLICKHOUSE_PASSWORD=${password}`, 'the line'))}
${toTools(connection, account)}
<p><a class="button" href="${visit.path}">Back to Connect</a></p>`;
  return { kind: 'page', title: 'Your new credentials', content };
}

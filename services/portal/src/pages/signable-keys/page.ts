/** The addresses that sign for an environment, and the calls that grant them contract roles. */
import {
  type CollectionRecord,
  createSignableKey,
  disableSignableKey,
  enableSignableKey,
  grantCallsOf,
  linkedCollectionsOf,
  type ShownSignableKey,
  toShownSignableKey,
} from '@playline/access-keys';
import { type HtmlValue, html } from '@playline/api-docs';
import { invalidField, PublicError } from '@playline/errors';
import {
  copyable,
  copyableBlock,
  disclosure,
  emptyState,
  keyValues,
  type Row,
  status,
  table,
  time,
} from '../../frame/components.ts';
import { buttonForm, field } from '../../frame/forms.ts';
import { pathInEnvironment } from '../../frame/layout.ts';
import type { FormValues, PortalPage, Visit } from '../../frame/page.ts';
import { scopeOf } from '../../frame/scope.ts';
import type { PageParts } from '../index.ts';

type Parts = Pick<PageParts, 'signableKeys' | 'collections' | 'settings'>;

const NO_SIGNER = 'SIGNER_PUBLIC_KEY is not set, so you cannot create keys. Contact the operator of this instance.';

export function createSignableKeysPage(parts: Parts): PortalPage {
  const { signableKeys, settings } = parts;
  return {
    path: '/projects/:project/environments/:environment/signable-keys',
    access: 'project.read',
    notices: {
      created: 'Key created. The private key is encrypted and never shown. Next, grant the roles to its address.',
      disabled: 'Key disabled. The key cannot sign until you enable it again. Its contract roles are unchanged.',
      enabled: 'Key enabled.',
    },
    show: async (visit, failure) => {
      const content = toContent(await readView(parts, visit), failure?.values);
      return { kind: 'page', title: 'Signable keys', content };
    },
    actions: {
      create: {
        access: 'signable-keys.create',
        needsFreshSignIn: true,
        run: async (visit, values) => {
          const owner = readOwner(visit);
          const { signerKey } = settings;
          if (signerKey === null) throw new PublicError('CONFLICT_ERROR', { message: NO_SIGNER });
          const store = signableKeys.storeFor(visit.author);
          await createSignableKey({ store, signerKey }, { ...owner, name: values.text('name') });
          return { kind: 'redirect', notice: 'created' };
        },
      },
      disable: {
        access: 'signable-keys.disable',
        run: async (visit, values) => {
          const { project, environment } = scopeOf(visit);
          const key = { projectId: project.id, environmentId: environment.id, key: values.text('address') };
          await disableSignableKey({ store: signableKeys.storeFor(visit.author) }, key);
          return { kind: 'redirect', notice: 'disabled' };
        },
      },
      enable: {
        access: 'signable-keys.create',
        needsFreshSignIn: true,
        run: async (visit, values) => {
          const key = { ...readOwner(visit), key: values.text('address') };
          await enableSignableKey({ store: signableKeys.storeFor(visit.author) }, key);
          return { kind: 'redirect', notice: 'enabled' };
        },
      },
    },
  };
}

function readOwner(visit: Visit) {
  const { project, environment } = scopeOf(visit);
  if (project.state === 'archived')
    throw invalidField('project', 'The project is archived. Its keys can only be disabled.');
  return { projectId: project.id, environmentId: environment.id };
}

type KeysView = Awaited<ReturnType<typeof readView>>;

async function readView({ signableKeys, collections, settings }: Parts, visit: Visit) {
  const { id } = scopeOf(visit).environment;
  const keys = (await signableKeys.all()).filter(({ environmentId }) => environmentId === id).map(toShownSignableKey);
  const linked = linkedCollectionsOf(await collections.all(), id);
  return { visit, keys, linked, canCreate: settings.signerKey !== null };
}

function toContent(view: KeysView, values?: FormValues): HtmlValue {
  const { visit, keys } = view;
  const list =
    keys.length === 0
      ? emptyState(
          'No signable keys yet',
          html`<p>A signable key is an address that the service uses to sign for you. The private key is generated here and encrypted for the signer. It is never shown and cannot be exported.</p>`,
          { path: '/docs/keys', text: 'Which keys exist, and what they may do' },
        )
      : table(
          'Signable keys',
          ['Name', 'Address', 'State', 'Created'],
          keys.map((key) => toRow(visit, key, values?.text('address') === key.address)),
        );
  return html`${list}${visit.can('signable-keys.create') ? toCreateForm(view, values) : ''}${toGrantCalls(view)}`;
}

function toCreateForm({ visit, canCreate }: KeysView, values?: FormValues): HtmlValue {
  if (!canCreate) return html`<p>${NO_SIGNER}</p>`;
  const isSubmitted = values?.text('form') === 'create';
  const name = field({
    name: 'name',
    label: 'Name',
    value: isSubmitted ? values.text('name') : '',
    isRequired: true,
    maxLength: 200,
    hint: 'What the key is used for, such as “sword minter”.',
  });
  return disclosure('Create a key', visit.form('create', html`${name}<button>Create key</button>`), isSubmitted);
}

function toRow(visit: Visit, key: ShownSignableKey, isOpen: boolean): Row {
  const { name, address, state, createdAt } = key;
  const isLive = state === 'live';
  const form = isLive
    ? buttonForm(visit, 'disable', { text: 'Disable', name, kind: 'danger', field: 'address', value: address })
    : buttonForm(visit, 'enable', { text: 'Enable', name, field: 'address', value: address });
  const isAllowed = visit.can(isLive ? 'signable-keys.disable' : 'signable-keys.create');
  const shownState = isLive ? status('ok', 'live') : status('bad', 'disabled');
  const cells = [name, copyable(address, `the address of ${name}`), shownState, time(createdAt)];
  return isAllowed ? { cells, detail: form, isOpen } : cells;
}

const ROLE_TEXTS = { SIGNER_ROLE: 'can sign for the contract', MINTER_ROLE: 'can mint tokens' } as const;

/** Shows the calls that grant the roles. A contract's administrator must send them, because the portal cannot. */
function toGrantCalls({ visit, keys, linked }: KeysView): HtmlValue {
  const live = keys.filter(({ state }) => state === 'live');
  if (live.length === 0) return '';
  const path = pathInEnvironment(visit, 'collections');
  const calls =
    linked.length === 0
      ? html`<p>The calls appear here once you <a href="${path}">link a contract</a>.</p>`
      : linked.map((collection) => live.map((key) => toCalls(collection, key)));
  return html`<h2>Roles</h2>
<p>A key can sign and mint only for contracts that have granted the roles to its address. To grant them, the contract's administrator sends the calls below from a wallet, with the calldata shown and no value.</p>
<p class="quiet">The portal does not query chains. <a href="${path}">Collections</a> shows whether the signer had the minter role at the last mint.</p>
${calls}`;
}

function toCalls({ name, chain, contractAddress }: CollectionRecord, key: ShownSignableKey): HtmlValue {
  const blocks = grantCallsOf({ contract: contractAddress, address: key.address }).map(
    ({ role, signature, to, data }) => html`<h3>${role}: ${key.name} ${ROLE_TEXTS[role]}</h3>
${keyValues([
  ['Chain', chain],
  ['To', html`<code>${to}</code>`],
  ['Call', html`<code>${signature}</code>`],
])}
${copyableBlock(data, `the calldata for ${role}`)}`,
  );
  return disclosure(`${name} on ${chain}: allow ${key.name} to sign and mint`, blocks);
}

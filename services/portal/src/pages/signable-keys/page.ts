/** Addresses with which the service signs for an environment, and the contract roles that they need. */
import {
  type CollectionRecord,
  collectionsOf,
  createSignableKey,
  disableSignableKey,
  enableSignableKey,
  grantCallsOf,
  type ShownSignableKey,
  toShownSignableKey,
} from '@playline/access-keys';
import { type HtmlValue, html } from '@playline/api-docs';
import { invalidField, PublicError } from '@playline/errors';
import { copyable, copyableBlock, disclosure, emptyState, field, hidden, table, time } from '../../frame/components.ts';
import { pathInEnvironment } from '../../frame/layout.ts';
import type { FormValues, PortalPage, Visit } from '../../frame/page.ts';
import { scopeOf } from '../../frame/scope.ts';
import type { PagesParts } from '../index.ts';

type Parts = Pick<PagesParts, 'signableKeys' | 'collections' | 'settings'>;

const NO_SIGNER = 'Keys cannot be created here: the operator has not set SIGNER_PUBLIC_KEY, the signer’s public key.';

export function createSignableKeysPage(parts: Parts): PortalPage {
  const { signableKeys, settings } = parts;
  return {
    path: '/projects/:project/environments/:environment/signable-keys',
    access: 'project.read',
    notices: {
      created: 'Key created. Its private key is encrypted and never shown. Grant its address the roles next.',
      disabled: 'Key disabled. Nothing is signed with it. Its roles on contracts stay.',
      enabled: 'Key enabled.',
    },
    show: async (visit, fault) => {
      const { environment } = scopeOf(visit);
      const content = toContent(await readShown(parts, visit), fault?.values);
      return { kind: 'page', title: `Signable keys of ${environment.name}`, content };
    },
    actions: {
      create: {
        access: 'signable-keys.create',
        needsFreshSignIn: true,
        run: async (visit, values) => {
          const owner = ownerOf(visit);
          const { signerKey } = settings;
          if (signerKey === null) throw new PublicError('CONFLICT_ERROR', { message: NO_SIGNER });
          const store = signableKeys.changedBy(visit.author);
          await createSignableKey({ store, signerKey }, { ...owner, name: values.text('name') });
          return { kind: 'redirect', notice: 'created' };
        },
      },
      disable: {
        access: 'signable-keys.disable',
        run: async (visit, values) => {
          const { project, environment } = scopeOf(visit);
          const key = { projectId: project.id, environmentId: environment.id, key: values.text('address') };
          await disableSignableKey({ store: signableKeys.changedBy(visit.author) }, key);
          return { kind: 'redirect', notice: 'disabled' };
        },
      },
      enable: {
        access: 'signable-keys.create',
        needsFreshSignIn: true,
        run: async (visit, values) => {
          const key = { ...ownerOf(visit), key: values.text('address') };
          await enableSignableKey({ store: signableKeys.changedBy(visit.author) }, key);
          return { kind: 'redirect', notice: 'enabled' };
        },
      },
    },
  };
}

function ownerOf(visit: Visit) {
  const { project, environment } = scopeOf(visit);
  if (project.state === 'archived')
    throw invalidField('project', 'The project is archived. Its keys can only be disabled.');
  return { projectId: project.id, environmentId: environment.id };
}

type Shown = Awaited<ReturnType<typeof readShown>>;

async function readShown({ signableKeys, collections, settings }: Parts, visit: Visit) {
  const { project, environment } = scopeOf(visit);
  const inEnvironment = ({ environmentId }: { environmentId: string }) => environmentId === environment.id;
  const keys = (await signableKeys.all()).filter(inEnvironment).map(toShownSignableKey);
  const linked = collectionsOf(await collections.all(), project.id).filter(
    (record) => record.state === 'linked' && inEnvironment(record),
  );
  return { visit, keys, linked, canCreate: settings.signerKey !== null };
}

function toContent(shown: Shown, values?: FormValues): HtmlValue {
  const { visit, keys } = shown;
  const list =
    keys.length === 0
      ? emptyState(
          'No signable keys yet',
          html`<p>A signable key is an address with which the service signs for you. Its private key is created here and encrypted for the signer: it is never shown and cannot be exported.</p>`,
        )
      : table(
          'Signable keys',
          ['Name', 'Address', 'State', 'Created', 'Actions'],
          keys.map((key) => toRow(visit, key)),
        );
  return html`${list}${visit.mayDo('signable-keys.create') ? toCreate(shown, values) : ''}${toGrants(shown)}`;
}

function toCreate({ visit, canCreate }: Shown, values?: FormValues): HtmlValue {
  if (!canCreate) return html`<p>${NO_SIGNER}</p>`;
  const isTyped = values?.text('form') === 'create';
  const name = field({
    name: 'name',
    label: 'Name',
    value: isTyped ? values.text('name') : '',
    isRequired: true,
    charactersMax: 200,
    hint: 'What it signs, such as: minter of swords.',
  });
  return disclosure('Create a key', visit.form('create', html`${name}<button>Create key</button>`), isTyped);
}

function toRow(visit: Visit, { name, address, state, createdAt }: ShownSignableKey): HtmlValue[] {
  const isLive = state === 'live';
  const [action, text, className] = isLive ? ['disable', 'Disable', 'danger'] : ['enable', 'Enable', 'outline'];
  const form = visit.form(
    action,
    html`${hidden('address', address)}<button class="${className}">${text}<span class="unseen"> ${name}</span></button>`,
    { className: 'inline' },
  );
  const isAllowed = visit.mayDo(isLive ? 'signable-keys.disable' : 'signable-keys.create');
  const tag = isLive ? html`<span class="tag good">live</span>` : html`<span class="tag bad">disabled</span>`;
  return [name, copyable(address, `the address of ${name}`), tag, time(createdAt), isAllowed ? form : ''];
}

const ROLE_TEXTS = { SIGNER_ROLE: 'may sign for the contract', MINTER_ROLE: 'may mint with it' } as const;

/** The calls by which a contract's administrator grants the roles; the portal cannot send them. */
function toGrants({ visit, keys, linked }: Shown): HtmlValue {
  const live = keys.filter(({ state }) => state === 'live');
  if (live.length === 0) return '';
  const path = pathInEnvironment(visit, 'collections');
  const calls =
    linked.length === 0
      ? html`<p>The calls appear here once you <a href="${path}">link a contract</a>.</p>`
      : linked.map((collection) => live.map((key) => toCalls(collection, key)));
  return html`<h2>Roles</h2>
<p>A key signs and mints only where a contract grants its address the roles. The administrator of the contract sends these calls to the contract from any wallet, without value and with the calldata.</p>
<p class="quiet">The portal does not query chains. <a href="${path}">Collections</a> shows the minter role of the signer as of the last mint.</p>
${calls}`;
}

function toCalls({ name, chain, contractAddress }: CollectionRecord, key: ShownSignableKey): HtmlValue {
  const blocks = grantCallsOf({ contract: contractAddress, address: key.address }).map(
    ({ role, signature, to, data }) => html`<h3>${role}: ${key.name} ${ROLE_TEXTS[role]}</h3>
<dl><dt>Chain</dt><dd><code>${chain}</code></dd><dt>To</dt><dd><code>${to}</code></dd><dt>Call</dt><dd><code>${signature}</code></dd></dl>
${copyableBlock(data, `the calldata of ${role}`)}`,
  );
  return disclosure(`${name} on ${chain}: allow ${key.name} to sign and mint`, blocks);
}
